"""The parts of the studies: what a study computes at once is what its parts make together, and a part has no parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairfront import studies
from fairfront.runs import compute, store
from fairfront.runs.progress import quiet
from fairfront.studies.parameters import PROFILES

TINY: dict[str, dict[str, Any]] = {
    "badr_gd": {"decades": 1, "steps": 20, "data_steps": 5, "run_steps": 20, "pairs": 2},
    "badr_sgd": {"batch": (1, 8), "steps": 40, "seeds": 10},
    "implicit_gradients": {"loss": ("squared",), "grid": 3},
    "scalarisation": {"loss": ("logistic", "squared"), "groups": (2, 3), "problems": 1, "weights": 1, "points": 11},
    "seven_metrics": {
        "partition": ("german:gender", "compas:race"),
        "front": "german:gender",
        "points": 5,
        "orders": 2,
    },
    "three_groups": {"partition": ("compas:age", "german:gender+age"), "resolution": 4, "metric": ("hsic",)},
    "two_groups": {"data": ("compas", "german"), "points": 3, "metric": ("hsic",)},
}


@pytest.mark.parametrize("name", TINY)
def test_the_whole_is_what_the_parts_make(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRFRONT_STORE", str(tmp_path / "store"))
    module = studies.get(name)
    parameters = module.Parameters(profile="smoke", **TINY[name])
    monkeypatch.setattr(module, "measure", lambda tables, parameters: ())  # tiny sizes may say nothing
    joined = compute(name, parameters)
    assert len(joined.provenance["parts"]) == len(store.parts(name, parameters)) > 1
    whole = module.run(parameters, quiet)
    assert list(joined.tables) == list(whole)
    for table, frame in whole.items():
        frame.to_parquet(tmp_path / "whole.parquet", index=False)
        pd.testing.assert_frame_equal(joined.tables[table], pd.read_parquet(tmp_path / "whole.parquet"))


@pytest.mark.parametrize("name", studies.names())
def test_a_part_has_no_parts(name: str) -> None:
    module = studies.get(name)
    if not hasattr(module, "units"):
        pytest.skip("this study is computed as one")
    for profile in PROFILES:
        units = store.parts(name, module.Parameters(profile=profile))
        assert len(set(units)) == len(units)
        assert {unit.profile for unit in units} == {profile}
        for unit in units[:: max(1, len(units) // 4)]:
            assert store.parts(name, unit) == (unit,)


@pytest.mark.parametrize("name", ["badr_gd", "badr_sgd", "seven_metrics"])
def test_one_part_of_the_tables_alone_measures_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRFRONT_STORE", str(tmp_path / "store"))
    module = studies.get(name)
    part = module.PARTS[-1]
    tiny = TINY[name] | ({"task": ("income",)} if name == "badr_gd" else {})
    result = compute(name, module.Parameters(profile="smoke", part=part, **tiny))
    assert result.measurements == ()
    assert any(len(frame) for frame in result.tables.values())
