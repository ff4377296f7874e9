"""Adam in the eigenbasis of Shampoo's preconditioner, as a base optimiser.

The gradients of a physics-informed network are badly conditioned across the units of a layer: an operator of second
order weighs a unit by the square of its frequency.  Adam scales each weight by itself and leaves the units mixed; run
in the eigenbasis of the gradients' own second moments, ``E[G G']`` on the left and ``E[G' G]`` on the right, it scales
the directions that matter (Vyas et al., SOAP: Improving and Stabilizing Shampoo using Adam, 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from fairfront.errors import ArgumentError

__all__ = ["SOAP"]


class SOAP(torch.optim.Optimizer):
    """Adam in a slowly turning eigenbasis, for matrices; plain Adam for everything else.

    Parameters
    ----------
    params : iterable
        As for a torch optimiser.
    lr : float, default 3e-3
        Step size, of Adam's meaning: about the change of a weight a step.
    betas : tuple of float, default (0.95, 0.95)
        Averaging of the gradient, and of its square in the eigenbasis and of the basis's own second moments.
    eps : float, default 1e-8
        Added to the root of the second moment.
    every : int, default 10
        Steps between two turns of the basis (one power iteration with a QR decomposition).

    Raises
    ------
    ArgumentError
        For values out of range.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        eps: float = 1e-8,
        every: int = 10,
    ) -> None:
        if lr < 0:
            raise ArgumentError("lr", f"is {lr!r}", "a number >= 0")
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ArgumentError("betas", f"are {betas!r}", "two numbers in [0, 1)")
        if eps <= 0:
            raise ArgumentError("eps", f"is {eps!r}", "a number > 0")
        if every < 1:
            raise ArgumentError("every", f"is {every!r}", "at least 1 step")
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "every": every})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step."""
        found = None
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    _step(parameter, parameter.grad, self.state[parameter], group)
        return found


def _step(parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    first, second = group["betas"]
    # A side of one row or column has nothing to turn.
    sides = [side for side in (0, 1) if gradient.shape[side] > 1] if gradient.ndim == 2 else []
    if not state:
        state["step"] = 0
        state["mean"] = torch.zeros_like(gradient)
        state["square"] = torch.zeros_like(gradient)
        for side in sides:
            state[f"moment {side}"] = _outer(gradient, side)
            state[f"basis {side}"] = torch.linalg.eigh(state[f"moment {side}"])[1]
    state["step"] += 1
    state["mean"].lerp_(gradient, 1 - first)
    turned = _turn(gradient, state, sides)
    state["square"].mul_(second).addcmul_(turned, turned, value=1 - second)
    size = (state["square"] / (1 - second ** state["step"])).sqrt_().add_(group["eps"])
    move = (_turn(state["mean"], state, sides) / (1 - first ** state["step"])).div_(size)
    parameter.add_(_turn(move, state, sides, back=True), alpha=-group["lr"])
    for side in sides:
        moment = state[f"moment {side}"].lerp_(_outer(gradient, side), 1 - second)
        if state["step"] % group["every"] == 0:
            basis = state[f"basis {side}"]
            image = moment @ basis
            # Ordered by size, so that the QR decomposition takes the leading directions first.
            order = (basis * image).sum(0).argsort(descending=True)
            state[f"basis {side}"] = torch.linalg.qr(image[:, order])[0]
            state["square"] = state["square"].index_select(side, order)


def _outer(gradient: Tensor, side: int) -> Tensor:
    return gradient @ gradient.t() if side == 0 else gradient.t() @ gradient


def _turn(matrix: Tensor, state: dict[str, Any], sides: list[int], *, back: bool = False) -> Tensor:
    """Return the matrix in the eigenbasis, or back from it."""
    if 0 in sides:
        basis = state["basis 0"]
        matrix = (basis if back else basis.t()) @ matrix
    if 1 in sides:
        basis = state["basis 1"]
        matrix = matrix @ (basis.t() if back else basis)
    return matrix
