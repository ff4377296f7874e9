"""The study behind the chapter on badr-sgd."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs.progress import quiet
from fairfront.studies import badr_sgd as study
from fairfront.studies.parameters import parse


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke")


@pytest.fixture(scope="module")
def tables(parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return study.run(parameters, quiet)


def test_every_inequality_is_checked_and_holds(tables) -> None:
    checks = tables["checks"]
    counts = checks.groupby("claim").inequality.nunique()
    assert counts.to_dict() == study.CLAIMS
    assert checks.holds.all() and (checks.cases > 100).all()


def test_floors_fall_as_the_square_root_of_the_batch_and_do_not_vanish_with_the_step(tables) -> None:
    assert study._slope(tables, "w") == pytest.approx(-0.5, abs=0.05)
    assert study._slope(tables, "psi") == pytest.approx(-1.0, abs=0.1)
    assert study._kept(tables) > 0.9


def test_clipping_goes_from_all_steps_to_none(tables) -> None:
    shares = tables["clipping"].sort_values("radius").clipped
    assert shares.is_monotonic_decreasing and shares.iloc[0] > 0.9 and shares.iloc[-1] == 0.0


def test_claims_are_judged_by_the_numbers(tables, parameters) -> None:
    verdicts = {m.claim: m.verdict for m in study.measure(tables, parameters)}
    assert verdicts == {
        "badr-lemma-sto-bound-v": "reproduced in part",
        "badr-lemma-sto-drift": "reproduced",
        "badr-lemma-sto-product": "reproduced",
        "badr-lemma-sto-lyapunov": "reproduced in part",
        "badr-thm7": "not testable",
        "badr-thm7-floor": "reproduced in part",
    }
    worse = {name: frame.copy() for name, frame in tables.items()}
    worse["checks"]["holds"] = False
    worse["floors"][["w", "psi"]] = [1.0, 1.0]
    verdicts = {m.claim: m.verdict for m in study.measure(worse, parameters)}
    assert verdicts.pop("badr-thm7") == "not testable"
    assert set(verdicts.values()) == {"not reproduced"}


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert "alpha~" in facts["lost"] and "smoke" in facts["setting"]


@pytest.mark.parametrize(
    ("assignments", "name"), [({"batch": "0"}, "batch"), ({"steps": "3"}, "steps"), ({"seed": "-1"}, "seed")]
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["badr_sgd_paths", "badr_sgd_floor"])
def test_image(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name.removeprefix('badr_sgd_')}")(tables, parameters)
