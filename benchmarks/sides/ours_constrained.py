"""Our side of benchmarks.constrained, run by the project's Python, one thread.

Usage: python -m benchmarks.sides.ours_constrained step GROUPS BLOCKS DEVICE | epoch PASSES | memory GROUPS METHOD
Writes one line of JSON: least times in microseconds a step, seconds an epoch, or the peak of resident memory in MB.
"""

import json
import sys
import time

import torch

from benchmarks.harness import peak_mb
from benchmarks.steps import EPSILON, LR, Task, epoch_rows, interleaved
from fairfront.constrained import SPBM, SSLALM, PairwiseGroups, PenalizedAdam, SSw
from fairfront.constrained.moreau import Primal
from fairfront.constrained.networks import mlp
from fairfront.constrained.sampling import GroupSampler, feed


def adam(task, fused=None):
    """Return a step of torch's Adam as it comes, or with ``fused=True``, without constraints."""
    network = task.network()
    optimizer = torch.optim.Adam(network.parameters(), LR, fused=fused)

    def step():
        optimizer.zero_grad()
        loss, _ = task.forward(network)
        loss.backward()
        optimizer.step()

    return step


def flat_adam(task):
    """Return a step of Adam without constraints, of the flavour that ours uses: one buffer, fused."""
    network = task.network()
    primal = Primal(network.parameters(), torch.optim.Adam, LR, {}, True)

    def step():
        primal.zero_grad()
        loss, _ = task.forward(network)
        loss.backward()
        primal.step(0.0, 0.5)

    return step


def constrained(task, method, **options):
    """Return a step of a constrained optimiser."""
    network = task.network()
    constraint = PairwiseGroups(task.groups, epsilon=EPSILON)
    optimizer = method(network.parameters(), constraint, lr=LR, **options)

    def step():
        optimizer.zero_grad()
        loss, logits = task.forward(network)
        optimizer.step(loss, constraint(logits))

    return step


def binary(task):
    """Return a step of SPBM as a network with one logit takes it: loss and gaps with their gradient written out."""
    network = task.network()
    constraint = PairwiseGroups(task.groups, epsilon=EPSILON, compiled=True)
    spbm = {"gamma": 0.9, "kappa": 0.9, "mu": 2.0, "flat": True, "compiled": True}
    optimizer = SPBM(network.parameters(), constraint, lr=LR, **spbm)

    def step():
        optimizer.zero_grad()
        optimizer.step(*constraint.binary(network(task.x), task.y))

    return step


def variants(task):
    spbm = {"gamma": 0.9, "kappa": 0.9, "mu": 2.0}
    found = {
        "stock_adam": adam(task),
        "fused_adam": adam(task, fused=True),
        "same_adam": flat_adam(task),
        "spbm": constrained(task, SPBM, flat=True, **spbm),
        "spbm_unflat": constrained(task, SPBM, **spbm),
        "ssl_alm": constrained(task, SSLALM, flat=True, mu=2.0),
        "ssw": constrained(task, SSw, flat=True, mu=2.0),
        "penalized_adam": constrained(task, PenalizedAdam, flat=True),
    }
    if task.device == "cpu":
        found["spbm_compiled"] = constrained(task, SPBM, flat=True, compiled=True, **spbm)
        found["spbm_binary"] = binary(task)
        found["spbm_unflat_compiled"] = constrained(task, SPBM, compiled=True, **spbm)
    return found


def epoch(passes):
    """Return the least time of an epoch of E2's shape, feed included."""
    x, y, groups = epoch_rows()
    generator = torch.Generator().manual_seed(0)
    network = mlp(50, (64, 16), generator=generator)
    sampler = GroupSampler(groups, 72, generator=generator, epoch="smallest")
    constraint = PairwiseGroups(6, epsilon=EPSILON)
    optimizer = SPBM(network.parameters(), constraint, lr=LR, gamma=0.9, kappa=0.9, mu=2.0, flat=True, compiled=True)
    weights = sampler.weights()
    least = float("inf")
    for _ in range(passes):
        start = time.perf_counter()
        for rows, labels in feed(sampler.epoch(), x, y):
            optimizer.zero_grad()
            logits = network(rows).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
            optimizer.step(torch.dot(loss, weights), constraint(logits, labels))
        least = min(least, time.perf_counter() - start)
    return {"seconds": least, "steps": sampler.steps}


def main(mode, *arguments):
    torch.set_num_threads(1)
    if mode == "step":
        groups, blocks, device = int(arguments[0]), int(arguments[1]), arguments[2]
        task = Task(groups, device)
        result = interleaved(variants(task), blocks=blocks, device=device)
        result |= {"batch": task.batch, "hidden": list(task.hidden), "torch": torch.__version__}
    elif mode == "epoch":
        result = epoch(int(arguments[0]))
    else:
        task = Task(int(arguments[0]))
        step = {"adam": adam, "spbm": lambda task: constrained(task, SPBM, flat=True, mu=2.0)}[arguments[1]](task)
        for _ in range(50):
            step()
        result = {"peak_mb": peak_mb()}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
