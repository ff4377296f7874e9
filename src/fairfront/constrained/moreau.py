"""The primal half of every method: any base optimiser under Moreau smoothing, on tensors as they are or in one buffer.

The smoothed step minimises L(x) + (mu/2) |x - s|^2: ``mu (x - s)`` joins the gradient, and after the base
optimiser's step the centre follows by ``s+ = delta s + (1 - delta) x+``.  With ``mu = 0`` there is no centre.

In a flat buffer all parameters of a group are views of one vector, as are their gradients, so that smoothing and an
elementwise base optimiser cost a handful of kernels whatever the depth of the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from fairfront.constrained.adam import LeanAdam
from fairfront.errors import ArgumentError

__all__ = ["Base", "Params", "Primal"]

Base = Callable[..., Optimizer]
Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

# A model that was moved out of its buffer is noticed within so many steps: looking costs as much as a kernel.
_EVERY = 16
# Elementwise base optimisers, for which one long vector is the same as its pieces.
_ELEMENTWISE = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop")


class Primal:
    """Parameters, their base optimiser and their smoothing centre.

    Parameters
    ----------
    params : iterable
        As for a torch optimiser: tensors, (name, tensor) pairs or groups (dicts with "params").
    base : callable
        A torch optimiser class, or any callable of (params, lr=..., **options) that returns a torch optimiser.
    lr : float or None
        Step size; None leaves the base optimiser's default.
    options : dict
        Further arguments of ``base``.  Where its class knows ``fused`` and the tensors allow it, the fused form is
        used unless ``fused`` or ``foreach`` is given.
    flat : bool
        Whether to move the parameters into one buffer a group.  They stay the same objects.

    Attributes
    ----------
    optimizer : torch.optim.Optimizer
        The base optimiser.
    params : list of tensor
        Every parameter, in order, frozen ones included.
    """

    def __init__(self, params: Params, base: Base, lr: float | None, options: dict[str, Any], flat: bool) -> None:
        groups = _groups(params)
        self.params: list[Tensor] = [tensor for group in groups for tensor in group["params"]]
        if not any(tensor.requires_grad for tensor in self.params):
            raise ArgumentError("params", "none requires a gradient", "at least one to train")
        self.buffers: list[_Buffer] = []
        if flat:
            groups = [self._flatten(group) for group in groups]
        options = dict(options) if lr is None else {"lr": lr, **options}
        self._tensors: list[Tensor] = [tensor for group in groups for tensor in group["params"]]
        if not {"fused", "foreach"} & options.keys() and _can_fuse(base, self._tensors):
            options["fused"] = True
            if base is torch.optim.Adam:
                base = LeanAdam
        self._options = options
        self._groups = [{**group, "params": list(group["params"])} for group in groups]
        self._base = base
        self.optimizer = self.another({})
        if flat and type(self.optimizer).__name__ not in _ELEMENTWISE and not isinstance(self.optimizer, LeanAdam):
            raise ArgumentError(
                "flat", f"{type(self.optimizer).__name__} is not known to work elementwise", "flat=False"
            )
        self._centre: dict[int, Tensor] = {}

    def another(self, options: dict[str, Any]) -> Optimizer:
        """Return a further base optimiser over the same tensors, with some options changed."""
        groups = [{**group, "params": list(group["params"])} for group in self._groups]
        try:
            optimizer = self._base(groups, **{**self._options, **options})
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "base", f"cannot be made: {error}", "a torch optimiser class and its options"
            ) from error
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError("base", f"makes a {type(optimizer).__name__}", "a torch optimiser")
        if (
            inspect.signature(type(optimizer).step).parameters.get("closure", _OPTIONAL).default
            is inspect.Parameter.empty
        ):
            raise ArgumentError("base", f"{type(optimizer).__name__} evaluates the loss itself", "a one-step optimiser")
        return optimizer

    # ------------------------------------------------------------------------------------------- gradients

    def zero_grad(self) -> None:
        """Clear the gradients: in a buffer by zeroing it, else by dropping them."""
        if self.buffers:
            for buffer in self.buffers:
                buffer.zero_grad()
        else:
            for tensor in self.params:
                tensor.grad = None

    def gradients(self) -> list[Tensor]:
        """Return the gradients there are, as the base optimiser will see them."""
        self.settle()
        return [tensor.grad for tensor in self._tensors if tensor.grad is not None]

    def settle(self) -> None:
        """Bring gradients that came to lie outside the buffers (a foreign ``zero_grad`` drops the views) back."""
        for buffer in self.buffers:
            buffer.settle()

    # ------------------------------------------------------------------------------------------------ step

    def step(self, mu: float, delta: float, *, centre_first: bool = False, optimizer: Optimizer | None = None) -> None:
        """Step on the gradients at hand, smoothed; to be called under ``no_grad``.

        Parameters
        ----------
        mu, delta : float
            Smoothing (0: none) and the centre's inertia.
        centre_first : bool, default False
            Move the centre with x^k, before the step, instead of with x^(k+1).
        optimizer : torch.optim.Optimizer, optional
            Another one over the same tensors.
        """
        optimizer = optimizer or self.optimizer
        self.settle()
        if mu == 0:
            optimizer.step()
            return
        if len(self._tensors) == 1 and self._tensors[0].grad is not None:  # the same without the lists' overhead
            x = self._tensors[0]
            gradient, s = cast(Tensor, x.grad), self._centre_of(x)
            gradient.add_(x, alpha=mu).sub_(s, alpha=mu)
            if centre_first:
                s.lerp_(x, 1.0 - delta)
            optimizer.step()
            if not centre_first:
                s.lerp_(x, 1.0 - delta)
            return
        active = [tensor for tensor in self._tensors if tensor.grad is not None]
        centre = [self._centre_of(tensor) for tensor in active]
        offsets = torch._foreach_sub(active, centre)
        torch._foreach_add_([tensor.grad for tensor in active if tensor.grad is not None], offsets, alpha=mu)
        if centre_first:
            torch._foreach_lerp_(centre, active, 1.0 - delta)
        optimizer.step()
        if not centre_first:
            torch._foreach_lerp_(centre, active, 1.0 - delta)

    def _centre_of(self, tensor: Tensor) -> Tensor:
        # One that is unfrozen on the way starts its centre where it stands.
        centre = self._centre.get(id(tensor))
        if centre is None:
            centre = self._centre[id(tensor)] = tensor.detach().clone()
        return centre

    def start_centre(self) -> None:
        """Put the centre at the parameters as they are, s0 = x0."""
        self._centre = {id(tensor): tensor.detach().clone() for tensor in self._tensors if tensor.requires_grad}

    # ----------------------------------------------------------------------------------------------- state

    def centre(self) -> list[Tensor] | None:
        """Return the live centre, one tensor for each that the base optimiser moves; None without smoothing."""
        return list(self._centre.values()) or None

    def centre_state(self) -> dict[int, Tensor]:
        """Return a copy of the centre by the place of its tensor."""
        return {
            place: self._centre[id(tensor)].clone()
            for place, tensor in enumerate(self._tensors)
            if id(tensor) in self._centre
        }

    def check_centre(self, state: dict[int, Tensor]) -> None:
        """Refuse a saved centre of other tensors."""
        for place, saved in state.items():
            if place >= len(self._tensors) or self._tensors[place].shape != saved.shape:
                raise ArgumentError("state_dict", "its centre has other shapes than the parameters", "the same model")

    def load_centre(self, state: dict[int, Tensor]) -> None:
        """Take over a copy of a saved centre."""
        self._centre = {}
        for place, saved in state.items():
            tensor = self._tensors[place]
            self._centre[id(tensor)] = saved.detach().to(tensor).clone()

    def shapes(self) -> list[list[int]]:
        """Return the shapes of the tensors that the base optimiser moves."""
        return [list(tensor.shape) for tensor in self._tensors]

    # ---------------------------------------------------------------------------------------------- buffers

    def _flatten(self, group: dict[str, Any]) -> dict[str, Any]:
        kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        for tensor in group["params"]:
            if tensor.requires_grad:
                kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        made = [_Buffer(tensors) for tensors in kinds.values()]
        self.buffers += made
        return {**group, "params": [buffer.values for buffer in made]}


class _Buffer:
    """Some tensors as views of one vector, and their gradients as views of another."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors
        values = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        self.values = torch.nn.Parameter(values)
        self.gradient = torch.zeros_like(values)
        self.views: list[Tensor] = []
        self.addresses: list[int] = []
        self.calls = 0
        start = 0
        for tensor in tensors:
            end = start + tensor.numel()
            tensor.data = values[start:end].view(tensor.shape)
            view = self.gradient[start:end].view(tensor.shape)
            if tensor.grad is not None:
                view.copy_(tensor.grad)
            tensor.grad = view
            self.views.append(view)
            self.addresses.append(tensor.data_ptr())
            start = end
        self.values.grad = self.gradient

    def zero_grad(self) -> None:
        self.gradient.zero_()
        for tensor, view in zip(self.tensors, self.views):
            if tensor.grad is not view:
                tensor.grad = view

    def settle(self) -> None:
        for tensor, view in zip(self.tensors, self.views):
            if tensor.grad is not view:
                with torch.no_grad():
                    view.zero_() if tensor.grad is None else view.copy_(tensor.grad)
                tensor.grad = view
        if self.calls % _EVERY == 0:
            self.check_addresses()
        self.calls += 1
        if self.values.grad is not self.gradient:
            self.values.grad = self.gradient

    def check_addresses(self) -> None:
        for tensor, address in zip(self.tensors, self.addresses):
            if tensor.data_ptr() != address:
                raise ArgumentError(
                    "params",
                    "were moved or replaced after they were laid into one buffer",
                    "move the model first, then make the optimiser, or flat=False",
                )


_OPTIONAL = inspect.Parameter("closure", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)


def _groups(params: Params) -> list[dict[str, Any]]:
    if isinstance(params, Tensor):
        raise ArgumentError("params", "is one tensor", "an iterable of tensors or groups")
    listed: list[Any] = list(params)
    if not listed:
        raise ArgumentError("params", "are empty", "at least one tensor")
    groups = listed if all(isinstance(item, dict) for item in listed) else [{"params": listed}]
    made = []
    for group in groups:
        if not isinstance(group, dict) or "params" not in group:
            raise ArgumentError("params", "a group without the key 'params'", "dicts with 'params', or tensors")
        members = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        members = [item[1] if isinstance(item, tuple) else item for item in members]
        for item in members:
            if not isinstance(item, Tensor):
                raise ArgumentError("params", f"hold a {type(item).__name__}", "tensors")
            if not item.is_floating_point():
                raise ArgumentError("params", f"hold a tensor of {item.dtype}", "floating-point tensors")
        made.append({**group, "params": members})
    return made


def _can_fuse(base: Base, tensors: list[Tensor]) -> bool:
    if not (isinstance(base, type) and base in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)):
        return False
    return all(tensor.device.type in ("cpu", "cuda") for tensor in tensors)
