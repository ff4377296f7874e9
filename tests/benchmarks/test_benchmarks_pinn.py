"""The step times of a physics-informed network: the formulations are the same step, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from benchmarks import pinn


def test_formulations_train_alike() -> None:
    steps = pinn.formulations(points=40, boundary=8, hidden=3, width=12, seed=1)
    assert list(steps) == ["nested_autograd", "forward_rows_autograd", "forward_rows_function", "matrix_products"]
    losses = {name: [float(step()) for _ in range(4)] for name, step in steps.items() if name != "matrix_products"}
    reference = losses["nested_autograd"]
    assert reference[3] < reference[0]
    for found in losses.values():
        assert found == pytest.approx(reference, rel=1e-4)


def test_floor_does_the_products_of_the_forward_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, int, int]] = []
    real = torch.Tensor.__matmul__

    def count(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        counted.append((a.shape[0], a.shape[1], b.shape[1]))
        return real(a, b)

    monkeypatch.setattr(torch.Tensor, "__matmul__", count)
    steps = pinn.formulations(points=40, boundary=8, hidden=3, width=12, seed=1)
    steps["matrix_products"]()
    floor, counted[:] = sorted(counted), []
    steps["forward_rows_function"]()
    # Nothing is skipped and nothing added: the Function's own products, and no others, are the floor.
    assert sorted(counted) == floor


def test_file_holds_a_row_a_formulation(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        pinn.main(
            f"--points 30 --boundary 6 --hidden 2 --width 8 --rounds 2 --repeats 1 --json {tmp_path / 'p.json'}".split()
        )
    finally:
        torch.set_num_threads(threads)
    written = json.loads((tmp_path / "p.json").read_text())
    rows = {row["formulation"]: row for row in written["rows"]}
    assert len(rows) == 4 and written["threads"] == 1 and written["sizes"]["points"] == 30
    for row in rows.values():
        assert row["ratio_nested"] == pytest.approx(row["step_ms"] / rows["nested_autograd"]["step_ms"])
        assert row["ratio_floor"] == pytest.approx(row["step_ms"] / rows["matrix_products"]["step_ms"])
