"""Records humancompatible-train's trajectories on the small problem.  Run by the peer's interpreter: FILE.npz.

.peers/constrained/bin/python tests/constrained/constrained_peer.py tests/constrained/peer_trajectories.npz
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from constrained_problem import CONFIGURATIONS, ETA, FIRST, KEPT, LAMBDA, PENALTY, RHOS, SETTINGS, STEPS, Problem


def augmented(rho):
    from humancompatible.train.dual_optim import ALM

    problem = Problem()
    primal = torch.optim.Adam(problem.parameters, lr=SETTINGS["lr"])
    dual = ALM(m=6, lr=ETA, penalty=rho, dual_range=(0.0, LAMBDA[1]), init_duals=0.0, is_ineq=True)
    kept = []
    for step in range(STEPS):
        primal.zero_grad()
        loss, constraints = problem.evaluate(step)
        dual.forward_update(loss, constraints).backward()
        primal.step()
        if step + 1 in KEPT:
            kept.append(problem.snapshot(dual.duals))
    return np.array(kept)


def trajectory(rule, phi, mu):
    from humancompatible.train.dual_optim import PBM, MoreauEnvelope

    problem = Problem()
    primal = torch.optim.Adam(problem.parameters, lr=SETTINGS["lr"])
    if mu:
        primal = MoreauEnvelope(primal, mu=mu, beta=SETTINGS["delta"])
    dual = PBM(
        m=6,
        penalty_mult=SETTINGS["kappa"],
        gamma=SETTINGS["gamma"],
        penalty_update={"adapt": "dimin_adapt", "alm": "alm"}[rule],
        pbf={"ql": "quadratic_logarithmic", "qr": "quadratic_reciprocal"}[phi],
        init_duals=FIRST,
        init_penalties=PENALTY[1],
        dual_range=LAMBDA,
        penalty_range=PENALTY,
        gamma_annealing=False,
        penalty_annealing=False,
        rho=SETTINGS["rho"],
    )
    kept = []
    for step in range(STEPS):
        primal.zero_grad()
        loss, constraints = problem.evaluate(step)
        dual.forward_update(loss, constraints).backward()
        primal.step()
        if step + 1 in KEPT:
            kept.append(problem.snapshot(dual.duals, dual.penalties))
    return np.array(kept)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    record = {f"{rule}-{phi}-{mu:g}": trajectory(rule, phi, mu) for rule, phi, mu in CONFIGURATIONS}
    record |= {f"augmented-{rho:g}": augmented(rho) for rho in RHOS}
    np.savez_compressed(sys.argv[1], **record)
