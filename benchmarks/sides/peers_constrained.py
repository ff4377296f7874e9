"""The peers' side of benchmarks.constrained, run by their own Python, one thread.

Usage: python -m benchmarks.sides.peers_constrained step GROUPS BLOCKS DEVICE | epoch PASSES
Writes one line of JSON. humancompatible-train's PBM and ALM run under its Moreau envelope on torch's Adam, as its
examples do; its SSG and cooper's Lagrangian on torch's Adam. The names begin with the package's.
"""

import itertools
import json
import sys
import time

import cooper
import torch
from humancompatible.train.dual_optim import ALM, PBM, SSG, MoreauEnvelope
from humancompatible.train.fairness.utils import BalancedBatchSampler
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.steps import EPSILON, LR, Task, epoch_rows, interleaved


def pbm(m, device):
    return PBM(
        m,
        penalty_mult=0.9,
        gamma=0.9,
        gamma_annealing=False,
        penalty_annealing=False,
        dual_range=(1e-4, 100.0),
        device=device,
    )


def adam(task):
    network = task.network()
    optimizer = torch.optim.Adam(network.parameters(), LR)

    def step():
        optimizer.zero_grad()
        loss, _ = task.forward(network)
        loss.backward()
        optimizer.step()

    return step


def dual(task, method, smoothed):
    network = task.network()
    optimizer = torch.optim.Adam(network.parameters(), LR)
    if smoothed:
        optimizer = MoreauEnvelope(optimizer, mu=2.0)

    def step():
        loss, logits = task.forward(network)
        method.forward_update(loss, task.vector(logits)).backward()
        optimizer.step()
        for parameter in network.parameters():
            parameter.grad = None

    return step


class Problem(cooper.ConstrainedMinimizationProblem):
    """The step's problem, as cooper wants it."""

    def __init__(self, task, network):
        super().__init__()
        self.task, self.network = task, network
        multiplier = cooper.multipliers.DenseMultiplier(num_constraints=task.m, device=task.device)
        self.gaps = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

    def compute_cmp_state(self):
        """Return loss and gaps on the batch."""
        loss, logits = self.task.forward(self.network)
        state = cooper.ConstraintState(violation=self.task.vector(logits))
        return cooper.CMPState(loss=loss, observed_constraints={self.gaps: state})


def lagrangian(task):
    network = task.network()
    problem = Problem(task, network)
    optimizer = cooper.optim.SimultaneousOptimizer(
        problem,
        torch.optim.Adam(network.parameters(), LR),
        torch.optim.SGD(problem.dual_parameters(), 0.01, maximize=True),
    )
    return lambda: optimizer.roll()


def variants(task):
    return {
        "stock_adam": adam(task),
        "humancompatible-train PBM": dual(task, pbm(task.m, task.device), True),
        "humancompatible-train ALM": dual(
            task, ALM(task.m, is_ineq=True, dual_range=(0.0, 100.0), device=task.device), True
        ),
        "humancompatible-train SSG": dual(task, SSG(task.m, device=task.device), False),
        "cooper Lagrangian": lagrangian(task),
    }


def epoch(passes):
    x, y, groups = epoch_rows()
    torch.manual_seed(0)
    widths = (50, 64, 16, 1)
    layers = [layer for a, b in itertools.pairwise(widths) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    network = torch.nn.Sequential(*layers[:-1])
    members = [(groups == group).nonzero().flatten().tolist() for group in range(6)]
    sampler = BalancedBatchSampler(group_indices=members, batch_size=72)
    loader = DataLoader(TensorDataset(x, y, groups), batch_sampler=sampler)
    first, second = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    first, second = first[first != second], second[first != second]
    method = pbm(30, "cpu")
    optimizer = MoreauEnvelope(torch.optim.Adam(network.parameters(), LR), mu=2.0)
    least, feed = float("inf"), float("inf")
    for _ in range(passes):
        start = time.perf_counter()
        for rows, labels, numbers in loader:
            logits = network(rows).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            # Its batches are shuffled, so the groups' means take an addition by number.
            rates = torch.zeros(6).index_add(0, numbers, torch.sigmoid(logits)) / 12
            method.forward_update(loss, rates[first] - rates[second] - EPSILON).backward()
            optimizer.step()
            for parameter in network.parameters():
                parameter.grad = None
        least = min(least, time.perf_counter() - start)
        start = time.perf_counter()
        for _ in loader:
            pass
        feed = min(feed, time.perf_counter() - start)
    return {"seconds": least, "feed_seconds": feed, "steps": len(loader)}


def main(mode, *arguments):
    torch.set_num_threads(1)
    if mode == "step":
        groups, blocks, device = int(arguments[0]), int(arguments[1]), arguments[2]
        task = Task(groups, device)
        result = interleaved(variants(task), blocks=blocks, device=device)
    else:
        result = epoch(int(arguments[0]))
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
