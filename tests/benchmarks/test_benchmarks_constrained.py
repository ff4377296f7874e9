"""The drivers of constrained training: that both sides time the same step, and what is made of the times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import constrained, fairness_e3
from benchmarks.harness import BenchmarkError
from benchmarks.sides import ours_constrained
from benchmarks.steps import Task, epoch_rows, interleaved

from fairfront.constrained import PairwiseGroups
from fairfront.constrained.sampling import GroupSampler
from fairfront.constrained.training import Rows
from fairfront.studies.experiments import Data, configuration

KEYS = {"groups", "m", "stock_adam_us", "same_adam_us", "ours_us", "ratio_stock_adam", "ratio_same_adam", "peers"}


@pytest.mark.parametrize(("groups", "batch"), [(3, 72), (6, 72), (18, 72), (32, 64), (100, 400)])
def test_both_sides_are_given_the_same_constraints(groups: int, batch: int) -> None:
    task = Task(groups)
    assert (task.m, task.batch) == (groups * (groups - 1), batch)
    _, logits = task.forward(task.network())
    ours = PairwiseGroups(groups, epsilon=0.1).from_statistics(task.rates(logits)).vector()
    torch.testing.assert_close(task.vector(logits), ours)
    expected = [torch.sigmoid(logits)[i * task.rows : (i + 1) * task.rows].mean() for i in range(groups)]
    torch.testing.assert_close(task.rates(logits), torch.stack(expected))


def test_every_variant_of_ours_steps() -> None:
    found = interleaved(ours_constrained.variants(Task(3)), blocks=1)
    assert {"stock_adam", "same_adam", "spbm", "spbm_unflat", "ssl_alm", "ssw"} <= set(found)
    assert all(0 < time < 1e6 for time in found.values())


def test_times_are_least_ones_a_call() -> None:
    calls: list[str] = []
    least = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, blocks=3)
    assert calls[-8:] == ["a"] * 4 + ["b"] * 4
    assert calls.count("a") == calls.count("b") == 5 + 3 * 4
    assert 0 < least["a"] < 1e4


def test_a_row_compares_with_both_adams_and_each_peer_with_its_own() -> None:
    ours = {"stock_adam": 500.0, "same_adam": 250.0, "spbm": 320.0, "spbm_compiled": 300.0, "spbm_unflat": 450.0}
    peers = {"stock_adam": 400.0, "humancompatible-train PBM": 1000.0, "cooper Lagrangian": 800.0}
    figures = constrained.row(18, ours, peers, "humancompatible-train")
    assert set(figures) >= KEYS and (figures["groups"], figures["m"]) == (18, 306)
    assert (figures["ours_us"], figures["ratio_stock_adam"], figures["ratio_same_adam"]) == (300.0, 0.6, 1.2)
    assert figures["ratio_unflat_stock_adam"] == 0.9
    assert set(figures["peers"]) == {"humancompatible-train PBM"}
    assert figures["peers"]["humancompatible-train PBM"]["ratio_stock_adam"] == 2.5
    assert set(constrained.row(18, ours, peers, "all")["peers"]) == set(peers) - {"stock_adam"}
    assert constrained.row(18, ours, {}, "all")["peers"] == {}


def test_the_driver_runs_both_sides_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []

    def side(python: Path | str, name: str, arguments: list[str]) -> dict:
        ran.append((name, arguments[1]))
        slow = 10.0 * len(ran)
        times = {"stock_adam": 100.0 + slow, "same_adam": 60.0 + slow, "spbm": 70.0 + slow, "spbm_unflat": 90.0 + slow}
        return times if name == "ours_constrained" else {"stock_adam": 100.0, "cooper Lagrangian": 180.0 + slow}

    monkeypatch.setattr(constrained, "run_side", side)
    monkeypatch.setattr(constrained, "peer_python", lambda name: Path("python"))
    target = tmp_path / "figures.json"
    constrained.main(["--groups", "6,18", "--peer", "cooper", "--rounds", "2", "--json", str(target)])
    order = ["ours_constrained", "peers_constrained"] * 2
    assert ran == [(name, "6") for name in order] + [(name, "18") for name in order]
    first, second = json.loads(target.read_text())["rows"]
    assert (first["m"], first["stock_adam_us"]) == (30, 110.0)  # the first round was the quicker one
    assert set(second) >= KEYS and set(second["peers"]) == {"cooper Lagrangian"}


def test_without_the_peers_it_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> Path:
        raise BenchmarkError(f".peers/{name} is not there or not complete: run `make peers` first")

    monkeypatch.setattr(constrained, "peer_python", absent)
    with pytest.raises(SystemExit, match="run `make peers` first"):
        constrained.main(["--groups", "6"])
    with pytest.raises(SystemExit):
        constrained.main(["--groups", "1"])
    assert "'1' is no comma list of numbers >= 2" in capsys.readouterr().err


def test_the_epoch_has_the_shape_of_e2() -> None:
    x, y, groups = epoch_rows()
    assert x.shape == (98_925, 50) and set(y.tolist()) == {0.0, 1.0}
    assert GroupSampler(groups, 72, generator=torch.Generator(), epoch="smallest").steps == 983


@pytest.mark.parametrize("method", ["SPBM", "SSL-ALM", "Adam"])
def test_e3_runs_one_method_from_one_seed(method: str) -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(18 * 8) % 18
    rows = Rows.of(rng.normal(size=(len(groups), 5)), rng.integers(0, 2, len(groups)), groups)
    data = Data("dutch", "made up", False, rows, tuple(map(str, range(18))))
    first, again, other = (fairness_e3.run(data, method, seed, epochs=2) for seed in (0, 0, 1))
    _, selected = configuration("E3", fairness_e3.METHODS[method])
    assert first.constraints.shape == (2, 306) and first.optimizer.parameters == selected
    assert first.history["step"].tolist() == [2, 4]  # the smallest group fills two batches of 4
    assert first.history.equals(again.history) and not first.history.equals(other.history)
    loss, largest = fairness_e3.tail(first)
    assert loss == pytest.approx(first.history["objective"].mean())
    assert largest == pytest.approx(first.constraints.max(1).mean(), rel=1e-5)
