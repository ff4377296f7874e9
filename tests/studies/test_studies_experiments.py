"""The home of E1 to E5: what the paper prints, the rows, and one way to train them all."""

import numpy as np
import pytest
import torch

from fairfront import studies
from fairfront.datasets.inventory import State, at_hand
from fairfront.errors import ArgumentError, DataError
from fairfront.studies import experiments
from fairfront.studies.experiments import METHODS, Data

# Table 1, and the learning rates of B.4.
TABLE_1 = {"E1": (6, 2.0), "E2": (30, 0.1), "E3": (306, 0.1), "E4": (90, 0.1), "E5": (9900, 0.1)}
RATES = {
    "E1": {"adam": 0.001, "ssw": 0.001, "ssl-alm": 0.001, "spbm": 0.001},
    "E2": {"adam": 0.001, "ssw": 0.001, "ssl-alm": 0.005, "spbm": 0.005},
    "E3": {"adam": 0.005, "ssw": 0.05, "ssl-alm": 0.02, "spbm": 0.02},
    "E4": {"adam": 0.001, "ssw": 0.001, "ssl-alm": 0.01, "spbm": 0.005},
    "E5": {"adam": 0.01, "ssw": 0.001, "ssl-alm": 0.01, "spbm": 0.005},
}


@pytest.fixture(scope="module")
def adult() -> Data:
    return experiments.rows("E2", "adult", limit=1200)


def test_the_experiments_are_those_of_table_1() -> None:
    assert {e.name: (e.m, e.epsilon) for e in experiments.EXPERIMENTS.values()} == TABLE_1
    for experiment in experiments.EXPERIMENTS.values():
        pairs = experiment.n_groups * (experiment.n_groups - 1)
        assert experiment.m == (6 if experiment.statistic == "norm" else pairs)
        assert {*experiment.sources} <= {*experiments.SOURCES} and experiments.SOURCES[experiment.sources[0]].of_paper
    assert "experiments" not in studies.names()
    with pytest.raises(ArgumentError, match="did you mean"):
        experiments.get("E33")


def test_the_configurations_are_those_of_b4() -> None:
    for name, rates in RATES.items():
        assert {m: experiments.configuration(name, m)[0] for m in rates} == rates
        assert experiments.configuration(name, "adam")[1].beta == 0.0
        assert experiments.configuration(name, "adam-reg")[1].beta == 1.0
        assert experiments.configuration(name, "spbm")[1].phi == ("qr" if name == "E3" else "ql")
    assert experiments.configuration("E2", "spbm", gamma=0.0)[1].gamma == 0.0
    with pytest.raises(ArgumentError, match="method"):
        experiments.configuration("E1", "sgd")
    with pytest.raises(ArgumentError, match="gama"):
        experiments.configuration("E1", "spbm", gama=0.1)


def test_rows_are_cut_by_sex_and_marital_status(adult: Data) -> None:
    whole = experiments.rows("E2", "adult")
    assert len(whole.groups) == 6 and len(whole.rows) == 32_561 and not whole.as_paper
    shares = [np.bincount(data.rows.groups) / len(data.rows) for data in (whole, adult)]
    np.testing.assert_allclose(*shares, atol=1e-3)
    assert "1,200 of 32,561 rows" in adult.title
    # Two of three are married men or women; and what makes the groups is no feature.
    assert whole.groups[0] == "male & married" and shares[0][0] > 0.4
    assert whole.rows.X.shape[1] == experiments.rows("E1", "adult").rows.X.shape[1] - 6
    np.testing.assert_allclose(whole.rows.X.mean(0), 0.0, atol=1e-4)


def test_the_small_sample_has_four_groups() -> None:
    data = experiments.rows("E2", "acs2012")
    assert data.groups == ("male & married", "male & not married", "female & married", "female & not married")


def test_absent_rows_say_how_to_fetch_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "is_at_hand", lambda name: name in ("adult", "digits"))
    assert experiments.source("E1") == "adult" and experiments.source("E4") == "digits"
    with pytest.raises(DataError, match="E3: Dutch Census 2001 is not at hand; `fairfront data fetch dutch`"):
        experiments.source("E3")
    with pytest.raises(DataError, match="data fetch acs2018-government"):
        experiments.rows("E1", "government")
    with pytest.raises(ArgumentError, match="source of E3"):
        experiments.source("E3", "adult")


@pytest.mark.parametrize(("where", "found"), [("x/cifar10_10000_2000.npz", "cifar10-part"), ("x/a.tar.gz", "cifar10")])
def test_a_part_of_an_image_set_is_a_source_of_its_own(monkeypatch, where: str, found: str) -> None:
    state = State("cifar10", "images", "present", None, where, "")
    monkeypatch.setattr(experiments, "glance", lambda _: state)
    assert experiments.source("E4") == found
    (other,) = {"cifar10", "cifar10-part"} - {found}
    with pytest.raises(DataError, match="not at hand"):
        experiments.source("E4", other)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "source", "m"), [("E1", "adult", 6), ("E2", "adult", 30), ("E4", "digits", 90)])
def test_every_method_trains_every_experiment(name: str, source: str, m: int, method: str) -> None:
    data = experiments.rows(name, source, limit=600)
    result = experiments.train(name, method, 1, data=data, epochs=2, steps=6)
    assert result.constraints.shape == (2, m) and result.history["step"].tolist() == [3, 6]
    assert result.history["accuracy"].between(0, 1).all()
    assert result.optimizer.parameters == experiments.configuration(name, method)[1]


def test_e5_trains_in_full_and_small() -> None:
    data = experiments.rows("E5", "synthetic100", limit=400)
    small = experiments.train("E5", "spbm", data=data, epochs=1, steps=2, architecture="conv", mu=0.0)
    assert small.constraints.shape == (1, 9900) and small.optimizer.parameters.mu == 0.0
    model = experiments.network("E5", data, torch.Generator().manual_seed(0))
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_689_512 - 900 * 513
    with pytest.raises(ArgumentError, match="mlp does not take rows of shape"):
        experiments.network("E5", data, torch.Generator(), architecture="mlp")


def test_many_are_each_as_one_alone(adult: Data) -> None:
    jobs = [experiments.job("E2", method, seed) for method in ("spbm", "adam") for seed in (0, 1)]
    many = experiments.train_many("E2", jobs, data=adult, epochs=2, steps=40)
    for place, (method, seed) in enumerate([("spbm", 0), ("spbm", 1), ("adam", 0), ("adam", 1)]):
        alone = experiments.train("E2", method, seed, data=adult, epochs=2, steps=40).history
        mine = many.history[many.history["job"] == place]
        for column in ("objective", "max_constraint"):
            np.testing.assert_allclose(mine[column], alone[column], rtol=2e-3, atol=2e-4)
    with pytest.raises(ArgumentError, match="cannot be stacked"):
        experiments.train_many("E1", jobs, data=adult)
    with pytest.raises(ArgumentError, match="SSLALMParameters"):
        experiments.job("E2", "ssw")


def test_lengths_are_checked(adult: Data) -> None:
    with pytest.raises(ArgumentError, match="at least one an epoch"):
        experiments.train("E2", "adam", data=adult, epochs=10, steps=5)
    with pytest.raises(ArgumentError, match="steps"):
        experiments.train("E2", "adam", data=adult, steps=0)
    with pytest.raises(ArgumentError, match="limit"):
        experiments.rows("E2", "adult", limit=0)


@pytest.mark.skipif(not at_hand("dutch"), reason="needs the Dutch Census (FAIRFRONT_DATA)")
def test_e3_has_the_rows_of_the_paper() -> None:
    data = experiments.rows("E3")
    assert data.as_paper and len(data.rows) == 59_160 and len(data.groups) == 18


@pytest.mark.skipif(not at_hand("acs2018-government"), reason="needs the government sample (FAIRFRONT_DATA)")
def test_government_rows_are_told_from_the_papers() -> None:
    data = experiments.rows("E2", "government")
    assert not data.as_paper and "not ACSIncome" in data.title and len(data.groups) == 6


@pytest.mark.skipif(not at_hand("pums2011-income"), reason="needs the sample of 2011 (FAIRFRONT_DATA)")
def test_codes_of_the_survey_become_indicators() -> None:
    data = experiments.rows("E2", "pums2011")
    assert data.groups[1] == "male & no longer married" and data.rows.X.shape[1] > 500
    deviations = data.rows.X.std(0, correction=0)
    np.testing.assert_allclose(deviations, 1.0, atol=1e-3)
