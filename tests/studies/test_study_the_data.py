"""The study of Table 1: counts against the data, what is missing is said, verdicts follow from the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairfront.datasets import image_names, info, load, names
from fairfront.runs.progress import quiet
from fairfront.studies import the_data as study


@pytest.fixture(scope="module")
def parameters() -> study.Parameters:
    return study.Parameters(profile="smoke").resolved()


@pytest.fixture(scope="module")
def tables(parameters, tmp_path_factory) -> dict[str, pd.DataFrame]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIRFRONT_DATA", raising=False)
        patch.setenv("FAIRFRONT_CACHE", str(tmp_path_factory.mktemp("cache")))
        assert study.datasets(parameters) == names(embedded=True)
        return study.run(parameters, quiet)


def test_counts_are_those_of_the_data(tables) -> None:
    shown = tables["table"].set_index("data")
    assert list(shown.index) == [name for _, name, _, _ in study.TABLE_1]
    for name in ("adult", "compas", "german", "communities"):
        data = load(name, sensitive=info(name).sensitive[0].name, test_size=0)
        assert (shown.n[name], shown.d[name]) == data.X.shape
        assert shown.n[name] == shown.paper_n[name]
    assert shown.n.isna().sum() == 7
    groups = tables["groups"]
    for name, rows in groups.groupby("data"):
        sums = rows.groupby("attribute")["rows"].sum()
        assert (sums == sums.iloc[0]).all(), name


def test_what_is_missing_is_said_with_where_to_get_it(tables) -> None:
    states = tables["states"].set_index("data")
    assert list(states.index) == [*names(), *image_names()]
    assert (states.state == "missing").sum() == 15
    assert states["from"]["acs-income"].startswith("https://www2.census.gov")
    assert states["from"]["adult"] == "" and states.state["synthetic100"] == "embedded"


def test_785_data_sets_with_2_to_36_groups(tables) -> None:
    collection = tables["collection"]
    assert collection["data sets"].sum() == 785 == 3 * (51 * 5 + 4) + 8
    assert collection["fewest groups"].min() == 2 and collection["most groups"].max() == 36


def test_merging_and_splits(tables, parameters) -> None:
    merging = tables["merging"]
    assert sorted(merging.groups.unique()) == sorted({10, *parameters.groups})
    for count, rows in merging.groupby("groups"):
        assert len(rows) == count and rows["rows"].sum() == 32561
    assert len(tables["splits"]) == parameters.seeds and tables["splits"].gap.max() < 0.01


def test_no_feature_gives_a_target_away(tables) -> None:
    leaks = tables["leaks"]
    assert len(leaks) == len(names(embedded=True))
    assert (leaks.correlation < 0.85).all() and (leaks.explained < 0.8).all()


def test_verdicts_follow_from_the_tables(tables, parameters) -> None:
    one, two = study.measure(tables, parameters)
    assert (one.claim, one.verdict) == ("badr-table1", "reproduced in part")
    assert one.measured == "4 of 11 at hand: n equal for 4, d equal for 0" and "ACSIncome" in one.reason
    assert (two.claim, two.verdict) == ("badr-collection", "reproduced in part")
    assert two.measured.startswith("785 data sets")

    whole = tables["table"].assign(n=tables["table"].paper_n, d=tables["table"].paper_d)
    collection = tables["collection"].assign(**{"at hand": tables["collection"]["data sets"]})
    one, two = study.measure({**tables, "table": whole, "collection": collection}, parameters)
    assert one.verdict == two.verdict == "reproduced"
    fewer = tables["collection"].assign(**{"data sets": 1})
    assert study.measure({**tables, "collection": fewer}, parameters)[1].verdict == "not reproduced"
    none = tables["table"].assign(n=np.nan, d=np.nan)
    assert study.measure({**tables, "table": none}, parameters)[0].verdict == "not testable"


def test_words_and_figures(tables, parameters) -> None:
    facts = study.facts(tables, parameters)
    assert facts["at_hand"] == "4 of the 11" and facts["total"] == "785" and facts["missing"] == "15"
    assert all("adult" in facts[key] and "profile smoke" in facts[key] for key in ("setting", "merge_setting"))
    shown = study.table_1(tables)
    assert shown["n (here)"].to_list().count("not at hand") == 7
    for figure in (study.figure_groups(tables, parameters), study.figure_merging(tables, parameters)):
        assert isinstance(figure, Figure)
    left, right = study.figure_groups(tables, parameters).axes
    groups = tables["groups"]
    first = groups[groups.attribute == groups.groupby("data").attribute.transform("first")]
    assert len(left.patches) == len(first)
    assert sum(len(points.get_offsets()) for points in right.collections) == len(first)
