"""The training step that both sides of benchmarks.constrained time: rows, network, statistics and the clock.

It imports torch alone, because the peers' own environment imports it too.
"""

import itertools
import time

import torch
from torch import nn

__all__ = ["EPSILON", "LR", "Task", "epoch_rows", "interleaved"]

EPSILON, LR = 0.1, 1e-3
_CALLS = 4


class Task:
    """One batch of random rows, R groups in equal blocks, and ReLU networks for it.

    Parameters
    ----------
    groups : int
        R; m = R (R - 1).
    device : str
        Where.
    seed : int
        Of rows and networks.
    """

    def __init__(self, groups, device="cpu", seed=0):
        self.groups, self.m, self.device, self.seed = groups, groups * (groups - 1), device, seed
        # The sizes at which the method's cost was first measured; 400 rows and a wider network for many groups.
        self.batch, self.hidden = (
            (400, (256, 128)) if groups > 36 else ({6: 72, 18: 72, 32: 64}.get(groups, 0), (64, 16))
        )
        self.batch = self.batch or groups * max(2, 72 // groups)
        self.rows = self.batch // groups
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(self.batch, 50, generator=generator).to(device)
        self.y = (torch.rand(self.batch, generator=generator) < 0.5).float().to(device)
        first, second = torch.meshgrid(torch.arange(groups), torch.arange(groups), indexing="ij")
        off = first != second
        self.first, self.second = first[off].to(device), second[off].to(device)

    def network(self):
        """Return a fresh network, the same each time."""
        torch.manual_seed(self.seed)
        widths = (50, *self.hidden, 1)
        layers = [layer for a, b in itertools.pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1]).to(self.device)

    def forward(self, network):
        """Return the loss and the logits."""
        logits = network(self.x).squeeze(1)
        return nn.functional.binary_cross_entropy_with_logits(logits, self.y), logits

    def rates(self, logits):
        """Return each group's mean positive rate, (R,)."""
        return torch.sigmoid(logits).view(self.groups, self.rows).mean(1)

    def vector(self, logits):
        """Return the m gaps as a vector with a graph, as the peers take them: two gathers and a difference."""
        rates = self.rates(logits)
        return rates[self.first] - rates[self.second] - EPSILON


def interleaved(steps, *, blocks, device="cpu"):
    """Time functions in turn and return each one's least time a call in microseconds.

    On a CPU it is processor time, which is the wall's where nothing else runs: the steps have one thread and wait for
    nothing, and on a busy machine few blocks are left in peace. Four calls are timed at a time.

    Parameters
    ----------
    steps : dict of callables
        What to time.
    blocks : int
        So often each is timed.
    device : str
        Waited for around each block, where it is no CPU.
    """
    cuda = device.startswith("cuda")
    wait = torch.cuda.synchronize if cuda else lambda: None
    clock = time.perf_counter if cuda else time.process_time
    for step in steps.values():
        for _ in range(5):
            step()
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(blocks):
        for name, step in steps.items():
            wait()
            start = clock()
            for _ in range(_CALLS):
                step()
            wait()
            least[name] = min(least[name], (clock() - start) / _CALLS * 1e6)
    return least


def epoch_rows(seed=0):
    """Return rows, labels and groups of E2's shape: 98,925 x 50, 6 groups, the smallest of which fills 983 batches."""
    generator = torch.Generator().manual_seed(seed)
    n, smallest = 98_925, 11_800
    others = torch.randint(1, 6, (n - smallest,), generator=generator)
    groups = torch.cat((torch.zeros(smallest, dtype=torch.int64), others))
    groups = groups[torch.randperm(n, generator=generator)]
    x = torch.randn(n, 50, generator=generator)
    y = (torch.rand(n, generator=generator) < 0.5).float()
    return x, y, groups
