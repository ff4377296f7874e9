"""A small constrained problem in float64, the same in the tests and in the peer's environment (torch only)."""

import numpy as np
import torch

STEPS = 300
KEPT = (1, 2, 10, 50, 100, 200, 300)
CONFIGURATIONS = [(rule, phi, mu) for rule in ("adapt", "alm") for phi in ("ql", "qr") for mu in (0.0, 1.0)]
SETTINGS = {"gamma": 0.9, "kappa": 0.5, "rho": 1.5, "delta": 0.5, "lr": 0.01}
# The constraints bind from the start, so that multipliers, penalties and both branches of phi are all exercised.
LAMBDA, PENALTY, FIRST = (1e-4, 100.0), (0.02, 0.2), 0.5
EPSILON = 0.05
# Of the augmented Lagrangian.
ETA, RHOS = 0.05, (0.0, 0.7)


class Problem:
    """18 weights of a tanh network, three groups, their six gaps in positive rate, batches of 15 of 60 rows."""

    def __init__(self):
        rng = np.random.default_rng(7)
        self.groups = np.arange(60) % 3
        inputs = rng.normal(size=(60, 3)) + 0.8 * self.groups[:, None]
        labels = (inputs.sum(1) + rng.normal(size=60) > 1.5).astype(float)
        self.inputs, self.labels = torch.tensor(inputs), torch.tensor(labels)
        shapes = ((4, 3), (4,), (1, 4), (1,))
        self.parameters = [torch.tensor(0.7 * rng.normal(size=shape), requires_grad=True) for shape in shapes]
        self.pairs = [(i, j) for i in range(3) for j in range(3) if i != j]

    def evaluate(self, step):
        """Loss and the six constraint values on the batch of a step."""
        rows = torch.arange(15) * 4 + step % 4
        first, bias, second, offset = self.parameters
        logits = (torch.tanh(self.inputs[rows] @ first.T + bias) @ second.T + offset).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, self.labels[rows])
        groups = torch.tensor(self.groups)[rows]
        rates = torch.stack([torch.sigmoid(logits)[groups == group].mean() for group in range(3)])
        return loss, torch.stack([rates[i] - rates[j] - EPSILON for i, j in self.pairs])

    def snapshot(self, *duals):
        """Everything that moves, in one vector."""
        parts = [p.detach().reshape(-1) for p in self.parameters]
        return torch.cat([*parts, *(dual.detach().reshape(-1) for dual in duals)]).numpy().copy()
