"""The study of Figure 8: its instances, values, verdicts that follow the numbers, figures, and that it resumes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.errors import ArgumentError
from fairfront.runs import store
from fairfront.runs.progress import quiet
from fairfront.studies import many_groups as study
from fairfront.studies.instances import Instance, expanded, loaded
from fairfront.studies.parameters import parse
from fairfront.studies.strategies import NAMES, compare, metric_for

CLAIMS = ["best", "test", "onefit", "uniform", "degrade"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRFRONT_STORE", str(tmp_path_factory.mktemp("store")))
        yield


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke").resolved()


@pytest.fixture(scope="module")
def tables(kept: None, parameters: study.Parameters) -> dict[str, pd.DataFrame]:
    return store.compute("many_groups", parameters).tables


def _made(**changes: float) -> dict[str, pd.DataFrame]:
    """Return tables in which the paper's remarks hold, but for what is changed.

    ``NAME_PART`` is the median of a strategy on a part; one-group fitting also has the widest range.
    """
    middle = {
        f"{name}_{part}": {"badr": 1.0, "minimax": 1.05, "uniform": 1.08, "one_group": 3.0, "balanced": 1.5}[name]
        + (0.0 if part == "train" else 0.1 if name == "badr" else 0.3)
        for name in ("badr", "minimax", "uniform", "one_group", "balanced")
        for part in ("train", "test")
    } | changes
    rows = []
    for metric in study.Parameters().metric:
        for k in range(41):
            at = (k - 20) / 20  # from -1 to 1
            for name in study.FIVE:
                row: dict[str, object] = {"data": "toy", "partition": f"p{k}", "seed": 0, "groups": 2, "rows": 9}
                for part in ("train", "test"):
                    width = {"one-group": 0.9, "minimax": 0.5}.get(name, 0.2)
                    value = middle[f"{name.replace('-', '_')}_{part}"]
                    if name == "uniform" and metric != "individual_fairness":
                        value += 0.5
                    row |= {part: value + width * at, f"{part}_error": 0.2}
                rows.append(row | {"metric": metric, "strategy": name})
    return {"values": pd.DataFrame(rows), "skipped": pd.DataFrame(columns=["data", "partition", "seed", "reason"])}


def _verdicts(tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    return {m.claim.removeprefix("badr-fig8-"): m.verdict for m in study.measure(tables, study.Parameters())}


def test_every_instance_has_every_metric_and_strategy(tables, parameters) -> None:
    values = tables["values"]
    sizes = values.groupby(["data", "partition", "seed"]).size()
    assert (sizes == len(parameters.metric) * len(NAMES)).all() and len(sizes) == 7
    assert set(values.data) == {"ACS 2012 income", "German Credit"}
    assert not values.isna().any(axis=None)
    assert (values[["train", "test"]] >= 0).all(axis=None)


def test_values_are_those_of_the_strategies_less_the_floor(tables, parameters) -> None:
    data = Instance("german", ("age",)).load(0.3)
    frame = compare(data, ("equalized_odds",), resolution=41).set_index("strategy")
    mine = tables["values"].query("data == 'German Credit' and partition == 'age' and metric == 'equalized_odds'")
    floor = metric_for("equalized_odds").floor(2)
    assert floor == pytest.approx(2 * np.log(2))
    assert mine.set_index("strategy").test.to_dict() == pytest.approx((frame.test_metric - floor).to_dict())


def test_badr_is_never_beaten_on_training_rows(tables) -> None:
    wide = tables["values"].pivot_table(index=["metric", "data", "partition"], columns="strategy", values="train")
    assert (wide.sub(wide["badr"], axis=0) >= 0).all(axis=None)


def test_a_run_that_was_stopped_goes_on_where_it_was(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    few = study.Parameters(profile="smoke", metric=("hsic",), seeds=(0, 1), data=("german",))
    done: list[int] = []
    run_one = study._run_one

    def counted(parameters: study.Parameters, name: str, seed: int, progress: object) -> dict[str, pd.DataFrame]:
        done.append(seed)
        if len(done) == 2:
            raise KeyboardInterrupt
        return run_one(parameters, name, seed, progress)

    monkeypatch.setattr(study, "_run_one", counted)
    with pytest.raises(KeyboardInterrupt):
        store.compute("many_groups", few)
    tables = store.compute("many_groups", few).tables
    assert done == [0, 1, 1]
    assert sorted(tables["values"].seed.unique()) == [0, 1]
    assert any(entry.study == "many_groups" for entry in store.entries())


def test_too_few_instances_are_no_distribution(tables, parameters) -> None:
    found = study.measure(tables, parameters)
    assert [m.claim for m in found] == [f"badr-fig8-{name}" for name in CLAIMS]
    assert {m.verdict for m in found} == {"not testable"}
    assert all("7 instances" in m.reason for m in found)


def test_claims_are_judged_by_the_numbers() -> None:
    assert _verdicts(_made()) == dict.fromkeys(CLAIMS, "reproduced")
    # Minimax behind one-group fitting: one half of the first remark.
    assert _verdicts(_made(minimax_train=5.0))["best"] == "reproduced in part"
    assert _verdicts(_made(minimax_train=5.0, badr_train=9.0))["best"] == "not reproduced"
    assert _verdicts(_made(one_group_train=0.5, one_group_test=0.5))["onefit"] == "reproduced in part"
    # badr least fair on test rows: only minimax's tail is left.
    assert _verdicts(_made(badr_test=9.0))["test"] == "not reproduced"
    assert _verdicts(_made(uniform_train=2.0))["uniform"] == "reproduced in part"
    assert _verdicts(_made(uniform_train=0.1))["uniform"] == "not reproduced"
    flat = {f"{name}_test": 0.5 for name in ("badr", "minimax", "uniform", "one_group", "balanced")}
    assert _verdicts(_made(**flat))["degrade"] == "not reproduced"


def test_shares_of_the_fairest_add_up_and_ties_are_shared() -> None:
    shares = study.table_fairest(_made(minimax_train=1.0), "train").set_index("metric")
    assert shares.sum(axis=1).to_numpy() == pytest.approx(np.ones(len(shares)))
    values = _made()["values"]
    values["train"] = 1.0
    level = study.table_fairest({"values": values}, "train").set_index("metric")
    assert level.to_numpy() == pytest.approx(np.full(level.shape, 0.2))


def test_prose_quotes_the_tables(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert all(isinstance(text, str) and text for text in facts.values())
    assert facts["instances"] == "7" and "7 instances: 2 data sets" in facts["setting"] and "smoke" in facts["setting"]


def test_cells_that_are_too_small_are_merged_when_asked() -> None:
    wanted = [Instance("acs2012-income", ("race", "disability"))]
    assert not hasattr(next(iter(loaded(wanted)))[1], "X")
    instance, data = next(iter(loaded(wanted, merge=True, least_rows=20)))
    assert instance.groups == data.n_groups == 4 and data.group_sizes.min() >= 20
    assert instance.partition == "race x disability in 4 groups"


def test_stars_stand_for_years_and_states() -> None:
    assert len(expanded(["acs-employment/2018/*"])) == 51
    assert len(expanded(["acs-employment/*/*", "german"])) == 256
    assert expanded(["acs-income/*/FL"])[0] == "acs-income/2014/FL"
    with pytest.raises(ArgumentError, match="no survey"):
        expanded(["german/*"])


@pytest.mark.parametrize(
    ("assignments", "name"),
    [
        ({"data": "germany"}, "german"),
        ({"data": "communities"}, "classification"),
        ({"data": "german,german"}, "data"),
        ({"seeds": "1,1"}, "seeds"),
        ({"seeds": "-1"}, "seeds"),
        ({"test_size": "1"}, "test_size"),
        ({"most_attributes": "9"}, "most_attributes"),
        ({"metric": "individual"}, "individual_fairness"),
    ],
)
def test_bad_parameters_are_refused_by_name(assignments: dict[str, str], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        parse(study.Parameters, assignments)


def test_no_usable_partition_is_an_error(parameters) -> None:
    few = dataclasses.replace(parameters, data=("german",), least_rows=900)
    with pytest.raises(ArgumentError, match="no partition with enough rows"):
        study.run(few, quiet)


def test_the_figure_draws_the_tables(tables, parameters) -> None:
    figure = study.figure_cdf(tables, parameters)
    values = tables["values"]
    ax = figure.axes[0]
    line = {line.get_label(): line for line in ax.lines}["uniform"]
    mine = values[(values.metric == parameters.metric[0]) & (values.strategy == "uniform")].train
    x = line.get_xdata()
    np.testing.assert_allclose(np.sort(mine), x[np.isfinite(x)][-len(mine) :])
    assert ax.get_title() == "demographic parity, train"


@pytest.mark.mpl_image_compare(baseline_dir="baseline", style="default", tolerance=10, savefig_kwargs={"dpi": 60})
@pytest.mark.parametrize("name", ["cdf", "fairest"])
def test_image_many_groups(name: str, tables, parameters) -> Figure:
    return getattr(study, f"figure_{name}")(tables, parameters)
