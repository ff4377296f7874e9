"""The driver of benchmarks.bilevel: what it computes from the runs, and our side and the floor at a tiny size."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import bilevel, floor, synthetic
from benchmarks.harness import ROOT

from fairfront import metrics

KEYS = {"ours_s", "peer_s", "peer_compile_s", "ratio", "ratio_without_compile", "ours_value", "peer_value"}
KEYS |= {"ours_rss_mb", "peer_rss_mb"}


def test_rows_are_reproducible_grouped_and_standardised() -> None:
    X, y, groups = synthetic.make(3000, 6, seed=3)
    again = synthetic.make(3000, 6, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip((X, y, groups), again, strict=True))
    assert not np.array_equal(y, synthetic.make(3000, 6, seed=4)[1])
    assert X.shape == (3000, 17) and set(y) == {0.0, 1.0} and np.bincount(groups).min() >= 30
    np.testing.assert_array_equal(X[:, 0], 1.0)
    np.testing.assert_allclose(X[:, 1:].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X[:, 1:].std(axis=0), 1.0)
    with pytest.raises(ValueError, match="rows: 100"):
        synthetic.make(100, 6)


def test_summary_takes_least_times_and_the_ratio_of_them() -> None:
    runs = {
        "peer": [
            {"seconds": 12.0, "cpu_seconds": 8.0, "compile_seconds": 9.0, "peak_mb": 500.0},
            {"seconds": 10.0, "cpu_seconds": 9.0, "compile_seconds": 6.0, "peak_mb": 600.0},
        ],
        "ours": [
            {"seconds": 0.5, "cpu_seconds": 0.4, "peak_mb": 90.0},
            {"seconds": 0.25, "cpu_seconds": 0.2, "peak_mb": 80.0},
        ],
    }
    figures = bilevel.summary(runs, {"ours": (0.1, 0.0), "peer": (0.2, 1e-3)})
    assert set(figures) >= KEYS
    assert (figures["ours_s"], figures["peer_s"], figures["peer_compile_s"]) == (0.25, 10.0, 6.0)
    assert (figures["ratio"], figures["ratio_without_compile"], figures["ratio_cpu"]) == (40.0, 12.0, 40.0)
    assert (figures["ours_value"], figures["peer_value"]) == (0.1, 0.2)
    assert (figures["ours_rss_mb"], figures["peer_rss_mb"]) == (80.0, 500.0)


def test_both_sides_read_the_same_rows_run_in_turn_and_are_solved_exactly() -> None:
    asked = Namespace(
        rows=600, groups=2, metric="demographic_parity", peer="badr", parquet=False, pairs=2, seed=1, l2=1e-2
    )
    seen: list[tuple[str, bytes]] = []

    def run(side: str, folder: Path) -> dict:
        seen.append((side, b"".join((folder / f"{name}.npy").read_bytes() for name in ("X", "y", "groups"))))
        weights = [0.25, 0.75 + 1e-8] if side == "peer" else [0.5, 0.5]
        return {
            "seconds": 1.0,
            "cpu_seconds": 1.0,
            "compile_seconds": 0.5,
            "peak_mb": 1.0,
            "weights": weights,
            "coefficients": [0.0] * 17,
        }

    figures = bilevel.compare(asked, run, say=lambda line: None)
    assert [side for side, _ in seen] == ["peer", "ours", "peer", "ours"]
    assert len({rows for _, rows in seen}) == 1

    # By another route: weighted logistic regression of scikit-learn, whose C multiplies the loss.
    from sklearn.linear_model import LogisticRegression

    X, y, groups = synthetic.make(600, 2, seed=1)
    bound = metrics.get("demographic_parity", variant="paper").bind(y, groups)
    for side, weights in (("peer", np.array([0.25, 0.75])), ("ours", np.array([0.5, 0.5]))):
        rows = weights[groups] / np.bincount(groups)[groups]
        model = LogisticRegression(C=1 / 1e-2, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
        w = model.fit(X, y, sample_weight=rows).coef_[0]
        assert figures[f"{side}_value"] == pytest.approx(bound.value(X @ w), abs=1e-9)
        assert figures[f"{side}_coefficient_error"] == pytest.approx(np.abs(w).max(), abs=1e-6)


def test_ours_alone_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    asked = ["--rows", "600", "--groups", "3", "--metric", "disparate_mistreatment", "--peer", "none", "--pairs", "1"]
    assert bilevel.main([*asked, "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert figures["ours_s"] > 0 and figures["runs"]["ours"][0]["status"] == "converged"
    assert figures["ours_coefficient_error"] < 1e-7
    assert figures["ours_value"] == pytest.approx(figures["runs"]["ours"][0]["value"], abs=1e-12)
    assert "ours_s" in capsys.readouterr().out
    assert bilevel.main([*asked, "--parquet", "--json", str(out)]) == 0
    blocks = json.loads(out.read_text())
    assert blocks["source"] == "parquet" and figures["source"] == "memory"
    np.testing.assert_allclose(blocks["runs"]["ours"][0]["weights"], figures["runs"]["ours"][0]["weights"], atol=1e-7)


def test_mistakes_end_with_a_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.harness.ROOT", tmp_path)
    assert bilevel.main(["--rows", "600"]) == 1
    assert "make peers" in capsys.readouterr().err
    assert bilevel.main(["--rows", "50", "--peer", "none"]) == 1
    assert "rows: 50 is too few" in capsys.readouterr().err
    for bad in (["--pairs", "0"], ["--metric", "parity"], ["--peer", "nobody"], ["--parquet"]):
        with pytest.raises(SystemExit):
            bilevel.main(bad)


def test_kernels_of_the_floor_compute_what_they_say() -> None:
    X, y, _ = synthetic.make(700, 2, features=9)
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=9), rng.normal(size=9)
    p = 1 / (1 + np.exp(-(X @ w)))
    hessian = (X * (p * (1 - p))[:, None]).T @ X
    for block in (128, 1024):
        kernels = floor.Kernels(np.ascontiguousarray(X.T), y, block)
        np.testing.assert_allclose(kernels.gradient(w), X.T @ (p - y), atol=1e-10)
        for symmetric in (True, False):
            gradient, found = kernels.gradient_and_hessian(w, symmetric=symmetric)
            np.testing.assert_allclose(gradient, X.T @ (p - y), atol=1e-10)
            np.testing.assert_allclose(found, hessian, atol=1e-10)
        np.testing.assert_allclose(kernels.hessian_product(x), hessian @ x, atol=1e-10)


def test_floor_from_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "floor.json"
    assert bilevel.main(["--floor", "--rows", "2000", "--groups", "2", "--pairs", "1", "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    parts = ("gradient_hessian_s", "gradient_s", "hessian_product_s")
    assert figures["floor_s"] == pytest.approx(sum(figures[part] for part in parts))
    assert figures["over_floor"] == pytest.approx(figures["evaluation_s"] / figures["floor_s"])
    assert figures["solve_over_floor"] > 0 and figures["evaluations"] >= 2


@pytest.mark.skipif(not (ROOT / ".peers" / "badr" / ".ready").exists(), reason="needs make peers")
def test_the_peer_solves_the_same_problem(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    assert bilevel.main(["--rows", "400", "--groups", "2", "--pairs", "1", "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert set(figures) >= KEYS
    # Its model is ours at its weights, to the tolerance of its solver, and its own value of the metric is ours.
    assert figures["peer_coefficient_error"] < 1e-2
    assert figures["runs"]["peer"][0]["value"] == pytest.approx(figures["peer_value"], abs=1e-3)
    assert figures["ours_value"] <= figures["peer_value"] + 1e-9
    assert 0 < figures["peer_compile_s"] < figures["peer_s"]
