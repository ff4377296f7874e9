"""Step time of a physics-informed network by formulation: ``python -m benchmarks.pinn --json FILE``.

One step is the mean squared residual of the Helmholtz equation at the points, the mean squared value on the boundary,
one backward and one fused Adam step, in float32.  Formulations: nested automatic differentiation; the forward rows
written in differentiable operations; the package's custom Function; and the floor, the matrix products that the forward
rows cannot do without (forward, weight gradients, row gradients), without any other operation.  Formulations are
interleaved and the least time of each is kept: noise only adds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from fairfront.pde.networks import TanhNetwork, nested_rows

OPERATOR = (1.0, 1.0)


def differentiable_rows(network: TanhNetwork, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return u and its Laplacian by the same forward rows, left to autograd to differentiate."""
    n = points.shape[0]
    rows = points.new_zeros(4 * n, 2)
    rows[:n], rows[n : 2 * n, 0], rows[2 * n : 3 * n, 1] = points, 1, 1
    for layer in network.layers[:-1]:
        z, z_1, z_2, lz = (rows @ layer.weight.t()).chunk(4)
        h = torch.tanh(z + layer.bias)
        a = 1 - h * h
        rows = torch.cat([h, a * z_1, a * z_2, a * (lz - 2 * h * (z_1 * z_1 + z_2 * z_2))])
    u, _, _, laplacian = (rows @ network.layers[-1].weight.t())[:, 0].chunk(4)
    return u + network.layers[-1].bias, laplacian


def formulations(
    points: int, boundary: int, hidden: int, width: int, seed: int
) -> dict[str, Callable[[], Tensor | None]]:
    """Return one function a formulation: a whole step on a network of its own, returning the loss before it."""
    generator = torch.Generator().manual_seed(seed)
    inside = torch.rand(points, 2, generator=generator) * 2 - 1
    edge = torch.rand(boundary, 2, generator=generator) * 2 - 1
    edge[torch.arange(boundary), torch.arange(boundary) % 2] = 1.0
    source = (1 - 17 * math.pi**2) * torch.sin(math.pi * inside[:, 0]) * torch.sin(4 * math.pi * inside[:, 1])

    def step(terms: Callable[[TanhNetwork], tuple[Tensor, Tensor, Tensor]]) -> Callable[[], Tensor]:
        network = TanhNetwork(hidden, width, initialisation="xavier", seed=seed)
        optimiser = torch.optim.Adam(network.parameters(), 1e-4, fused=True)

        def run() -> Tensor:
            optimiser.zero_grad()
            u, laplacian, on_edge = terms(network)
            loss = (laplacian + u - source).square().mean() + on_edge.square().mean()
            loss.backward()
            optimiser.step()
            return loss.detach()

        return run

    def nested(network: TanhNetwork) -> tuple[Tensor, Tensor, Tensor]:
        rows = nested_rows(network, inside, OPERATOR)
        return rows.u, rows.operator, network(edge)

    def custom(network: TanhNetwork) -> tuple[Tensor, Tensor, Tensor]:
        rows = network.rows(inside, OPERATOR, edge)
        return rows.u, rows.operator, rows.plain

    n = 4 * points + boundary
    sizes = [2, *[width] * hidden, 1]
    products = [(torch.randn(n, i), torch.randn(o, i), torch.randn(n, o)) for i, o in pairwise(sizes)]

    def floor() -> None:
        for number, (rows, weight, gradient) in enumerate(products):
            rows @ weight.t()
            gradient.t() @ rows
            if number:
                gradient @ weight

    return {
        "nested_autograd": step(nested),
        "forward_rows_autograd": step(lambda network: (*differentiable_rows(network, inside), network(edge))),
        "forward_rows_function": step(custom),
        "matrix_products": floor,
    }


def measure(steps: dict[str, Callable[[], Tensor | None]], rounds: int, repeats: int) -> dict[str, float]:
    """Return the least milliseconds a step of each, over rounds that visit all of them in turn."""
    least = dict.fromkeys(steps, math.inf)
    for run in steps.values():
        run()
    for _ in range(rounds):
        for name, run in steps.items():
            for _ in range(repeats):
                start = time.perf_counter()
                run()
                least[name] = min(least[name], time.perf_counter() - start)
    return {name: 1e3 * seconds for name, seconds in least.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000, help="points of the residual (1000)")
    parser.add_argument("--boundary", type=int, default=200, help="points of the boundary (200)")
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3, help="steps of a formulation in a row, in each round (3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    steps = formulations(options.points, options.boundary, options.hidden, options.width, options.seed)
    least = measure(steps, options.rounds, options.repeats)
    rows = [
        {
            "formulation": name,
            "step_ms": milliseconds,
            "ratio_nested": milliseconds / least["nested_autograd"],
            "ratio_floor": milliseconds / least["matrix_products"],
        }
        for name, milliseconds in least.items()
    ]
    for row in rows:
        print(
            "{formulation:24s} {step_ms:8.2f} ms   {ratio_nested:5.2f} x nested   {ratio_floor:5.2f} x floor".format(
                **row
            )
        )
    if options.json:
        sizes = {key: getattr(options, key) for key in ("points", "boundary", "hidden", "width", "rounds", "repeats")}
        text = json.dumps({"sizes": sizes, "threads": 1, "torch": torch.__version__, "rows": rows}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
