"""What the constrained optimisers share: one step from a loss and constraint values, and a complete state."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from fairfront.constrained.constraints import Constraints, PairwiseValues, VectorValues
from fairfront.constrained.moreau import Base, Params, Primal
from fairfront.constrained.updates import DualState, parameters_of
from fairfront.errors import ArgumentError

__all__ = ["ConstrainedOptimizer", "StepInfo", "Values"]

Values = VectorValues
Closure = Callable[[], tuple[Tensor, Any]]


class StepInfo:
    """What one step saw and did.

    Attributes
    ----------
    step : int
        Number of the step, from 0.
    loss : tensor, scalar
        The objective, without its graph.
    skipped : int or tensor
        Constraints left out because their value was not finite, or their group absent.
    primal : {"full", "objective", "none"}
        "objective": a constraint that is not finite made the whole gradient so, hence the step went along the
        objective alone; "none": there was no finite gradient at all, and the parameters stayed.
    switched : bool
        SSw: the step went to a constraint.
    """

    __slots__ = ("_values", "loss", "primal", "skipped", "step", "switched")

    def __init__(self, step: int, loss: Tensor, values: Values) -> None:
        self.step = step
        self.loss = loss
        self._values = values
        self.skipped: int | Tensor = 0
        self.primal = "full"
        self.switched = False

    @property
    def constraints(self) -> Tensor:
        """The constraint values g, of the multipliers' shape; a matrix has NaN on its diagonal."""
        g = self._values.evaluate()
        return g.clone().fill_diagonal_(math.nan) if isinstance(self._values, PairwiseValues) else g

    @property
    def max_violation(self) -> float:
        """The largest finite constraint value (a bound that holds gives a negative one); NaN if there is none."""
        g = self.constraints
        finite = g[torch.isfinite(g)]
        return float(finite.max()) if len(finite) else math.nan

    def __repr__(self) -> str:
        return (
            f"StepInfo(step={self.step}, loss={float(self.loss):.6g}, max_violation={self.max_violation:.6g}, "
            f"skipped={int(self.skipped)}, primal={self.primal!r})"
        )


class ConstrainedOptimizer:
    """Base of the constrained optimisers; not to be made itself.

    Parameters
    ----------
    params : iterable
        As for a torch optimiser: tensors, named tensors or groups; frozen ones are left alone.
    m : int or a family of constraints
        How many constraints; a family (`fairfront.constrained.constraints`) brings its number, shape and names.
    base : callable, default torch.optim.Adam
        A torch optimiser class, or a callable that makes one from (params, lr=..., **options).
    lr : float, optional
        Its step size.
    base_options : dict, optional
        Its further arguments.
    parameters : dataclass, optional
        The method's parameters; the fields may also be given one by one, as ``**settings``.
    flat : bool, default False
        Move the parameters into one buffer: several times cheaper on small networks.  They stay the same objects,
        but must not be moved to another device afterwards.
    dtype : torch.dtype, optional
        Of multipliers and penalties; by default the first parameter's, at least float32.

    Raises
    ------
    ArgumentError
        For anything that cannot be, naming the argument.

    Notes
    -----
    ``step`` calls ``backward`` itself, once, on the loss and the constraints together; gradients add up until
    ``zero_grad``, as elsewhere in torch.  `optimizer` is the base optimiser, for learning-rate schedulers.
    """

    kind: ClassVar[str]
    parameters_class: ClassVar[type]

    def __init__(
        self,
        params: Params,
        m: int | Constraints,
        *,
        base: Base = torch.optim.Adam,
        lr: float | None = None,
        base_options: dict[str, Any] | None = None,
        parameters: Any = None,
        flat: bool = False,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        self.parameters = parameters_of(self.parameters_class, parameters, settings)
        if lr is not None and (not isinstance(lr, (int, float)) or not math.isfinite(lr) or lr < 0):
            raise ArgumentError("lr", f"is {lr!r}", "a finite number >= 0")
        self._names: Callable[[], tuple[str, ...]] | None = None
        if isinstance(m, int):
            if isinstance(m, bool) or m < 1:
                raise ArgumentError("m", f"is {m}", "at least 1 constraint")
            self.m = m
            shape: tuple[int, ...] = (m,)
        elif hasattr(m, "state_shape"):
            self.m, self._names = m.m, m.names
            shape = tuple(m.state_shape)
        else:
            raise ArgumentError("m", f"is {m!r}", "a number of constraints, or a family of constraints")
        self._primal = Primal(params, base, lr, base_options or {}, flat)
        self._flat = flat
        if self.parameters.mu > 0:
            self._primal.start_centre()
        first = self._primal.params[0]
        if dtype is None:
            dtype = torch.promote_types(first.dtype, torch.float32)
        self._step = 0
        self._device = first.device
        self._dtype = dtype
        self._loose_shape = isinstance(m, int)
        self._skips: Tensor | None = None
        self._lay(shape)

    # -------------------------------------------------------------------------------- for the methods' own use

    def _initial(self) -> tuple[float, float | None]:
        """Return the multipliers and penalties at the start."""
        return 0.0, None

    def _propose(self, g: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return weights, next multipliers and next penalties from finite constraint values."""
        raise NotImplementedError

    def _advance(self, g: Tensor) -> Tensor:
        """Return the weights of the constraints' gradients, and commit the next dual state."""
        weights, multipliers, penalties = self._propose(g)
        if multipliers is not None:
            self._multipliers.copy_(multipliers)
        if penalties is not None and self._penalties is not None:
            self._penalties.copy_(penalties)
        return weights

    def _advance_finite(self, g: Tensor, finite: Tensor) -> Tensor:
        """Do the same where some values are not finite: those constraints weigh nothing and keep their state."""
        weights, multipliers, penalties = self._propose(torch.where(finite, g, 0.0))
        if multipliers is not None:
            self._multipliers.copy_(torch.where(finite, multipliers, self._multipliers))
        if penalties is not None and self._penalties is not None:
            self._penalties.copy_(torch.where(finite, penalties, self._penalties))
        return torch.where(finite, weights, 0.0)

    def _move(self, info: StepInfo) -> None:
        """Take the primal step on the gradients at hand."""
        self._primal.step(self.parameters.mu, self.parameters.delta)

    # ------------------------------------------------------------------------------------------------- step

    def step(self, loss: Tensor | Closure, constraints: Any = None) -> StepInfo:
        """Take one step.

        Parameters
        ----------
        loss : scalar tensor, or callable
            The objective on a batch, with its graph; or a function without arguments that returns the loss and the
            constraints (it is called once, with gradients enabled, after ``zero_grad``).
        constraints : tensor of shape (m,), or PairwiseValues
            Their values, to be <= 0, with their graph.

        Returns
        -------
        StepInfo
            What was seen and done.

        Raises
        ------
        ArgumentError
            If the loss is not a finite scalar with a graph, or the constraints are not m values in a vector.
            Nothing has changed then.
        """
        if callable(loss) and not isinstance(loss, Tensor):
            if constraints is not None:
                raise ArgumentError("constraints", "given beside a closure", "let the closure return both")
            self.zero_grad()
            with torch.enable_grad():
                returned = loss()
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ArgumentError("loss", "the closure returns something else", "the pair (loss, constraints)")
            loss, constraints = returned
        values = self._read(constraints)
        seen = self._check_loss(loss, values)
        info = StepInfo(self._step, seen, values.detach())
        with torch.no_grad():
            pulled = self._dual_step(values, info)
            self._backward(loss, values, pulled, info)
            if info.primal != "none":
                self._move(info)
        self._step += 1
        return info

    def _dual_step(self, values: Values, info: StepInfo) -> Tensor | None:
        source = values.source.detach()
        g = values.evaluate()
        if g.dtype != self._dtype or g.device != self._multipliers.device:
            g = g.to(self._multipliers)
        whole = not isinstance(values, PairwiseValues) or values.present is None
        if whole and source.device.type == "cpu" and math.isfinite(source.sum().item()):
            weights = self._advance(g)
        else:
            finite = torch.isfinite(g)
            self._count(finite, info)
            weights = self._advance_finite(g, finite)
        pulled = values.pull(weights)
        return pulled if pulled.dtype == source.dtype and pulled.device == source.device else pulled.to(source)

    def _count(self, finite: Tensor, info: StepInfo) -> None:
        missing = ~finite
        if finite.ndim == 2:
            missing = missing.fill_diagonal_(False)
        if self._skips is None:
            self._skips = torch.zeros(finite.shape, dtype=torch.int64, device=finite.device)
        self._skips += missing
        skipped = missing.sum()
        info.skipped = int(skipped) if finite.device.type == "cpu" else skipped

    def _backward(self, loss: Tensor, values: Values, pulled: Tensor | None, info: StepInfo) -> None:
        """Accumulate the gradients; keep them finite where a constraint's value is not."""
        doubtful = isinstance(info.skipped, int) and info.skipped > 0
        if not doubtful:
            values.backward(loss, pulled)
            return
        # A value that is not finite often has a gradient that is not either, and 0 times that is NaN.
        before = {id(tensor): tensor.grad.clone() for tensor in self._holders() if tensor.grad is not None}
        values.backward(loss, pulled, retain_graph=True)
        if self._finite_gradients():
            return
        self._restore(before)
        info.primal = "objective"
        values.backward(loss, None)
        if not self._finite_gradients():
            self._restore(before)
            info.primal = "none"

    def _holders(self) -> list[Tensor]:
        self._primal.settle()
        return [tensor for tensor in self._primal._tensors if tensor.grad is not None]

    def _finite_gradients(self) -> bool:
        return all(bool(torch.isfinite(gradient).all()) for gradient in self._primal.gradients())

    @torch.no_grad()
    def _restore(self, before: dict[int, Tensor]) -> None:
        for tensor in self._holders():
            assert tensor.grad is not None
            if id(tensor) in before:
                tensor.grad.copy_(before[id(tensor)])
            else:
                tensor.grad = None

    def _read(self, constraints: Any) -> Values:
        if isinstance(constraints, PairwiseValues):
            if constraints.m != self.m:
                raise ArgumentError("constraints", f"are {constraints.m} gaps between groups", f"m = {self.m} of them")
            values: Values = constraints
        elif isinstance(constraints, Tensor):
            if constraints.shape != (self.m,):
                hint = f"shape ({self.m},): one value a constraint"
                raise ArgumentError("constraints", f"have shape {tuple(constraints.shape)}", hint)
            values = VectorValues(constraints)
        else:
            raise ArgumentError("constraints", f"are {type(constraints).__name__}", "a tensor (m,), or PairwiseValues")
        if values.state_shape != self._multipliers.shape:
            if not self._loose_shape or self._step:
                raise ArgumentError(
                    "constraints",
                    f"come in shape {values.state_shape}, the multipliers in {tuple(self._multipliers.shape)}",
                    "the same form at every step",
                )
            self._lay(values.state_shape)
        return values

    def _check_loss(self, loss: Any, values: Values) -> Tensor:
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise ArgumentError("loss", f"is no scalar: {shape}", "a tensor with one number")
        if not values.carries(loss):
            raise ArgumentError("loss", "has no graph", "compute it from the parameters, without no_grad")
        seen = loss.detach()
        # On other devices asking would wait for all that is queued.
        if seen.device.type == "cpu" and not math.isfinite(seen.item()):
            raise ArgumentError("loss", f"is {seen.item()} at step {self._step}", "a finite number: a smaller lr?")
        return seen

    def _lay(self, shape: tuple[int, ...]) -> None:
        multiplier, penalty = self._initial()
        options: dict[str, Any] = {"dtype": self._dtype, "device": self._device}
        self._multipliers = torch.full(shape, multiplier, **options)
        self._penalties = None if penalty is None else torch.full(shape, penalty, **options)

    # ------------------------------------------------------------------------------------------ what it holds

    @property
    def optimizer(self) -> Optimizer:
        """The base optimiser: for learning-rate schedulers."""
        return self._primal.optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The base optimiser's groups (SSw: of both), where the step sizes are."""
        return [group for optimizer in self._optimizers() for group in optimizer.param_groups]

    def rescale_lr(self, factor: float) -> None:
        """Set every group's step size to ``factor`` times the one it began with."""
        for group in self.param_groups:
            group["lr"] = factor * group.setdefault("initial_lr", group["lr"])

    @property
    def multipliers(self) -> Tensor:
        """A copy of lambda: (m,), or (R, R) with a zero diagonal."""
        return self._without_diagonal(self._multipliers, 0.0)

    @property
    def penalties(self) -> Tensor | None:
        """A copy of p: (m,), or (R, R) with NaN on the diagonal; None where the method has none."""
        return None if self._penalties is None else self._without_diagonal(self._penalties, math.nan)

    @property
    def skip_counts(self) -> Tensor:
        """How often each constraint was skipped, of the multipliers' shape."""
        if self._skips is None:
            return torch.zeros(self._multipliers.shape, dtype=torch.int64, device=self._multipliers.device)
        return self._skips.clone()

    @property
    def never_seen(self) -> Tensor:
        """Which constraints were skipped at every step so far (all False before the first)."""
        return self.skip_counts >= max(self._step, 1)

    @property
    def state(self) -> DualState:
        """A copy of multipliers, penalties, centre and step."""
        return DualState(self._multipliers, self._penalties, self._primal.centre(), self._step).copy()

    def constraint_names(self) -> tuple[str, ...]:
        """Return one name a constraint."""
        return self._names() if self._names else tuple(f"constraint {i}" for i in range(self.m))

    def zero_grad(self) -> None:
        """Clear the parameters' gradients."""
        self._primal.zero_grad()

    def _without_diagonal(self, tensor: Tensor, value: float) -> Tensor:
        return tensor.clone().fill_diagonal_(value) if tensor.ndim == 2 else tensor.clone()

    def _optimizers(self) -> list[Optimizer]:
        return [self._primal.optimizer]

    # ------------------------------------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on, beside the parameters: copies, no live tensors."""
        return {
            "kind": self.kind,
            "m": self.m,
            "flat": self._flat,
            "tensors": self._primal.shapes(),
            "parameters": dataclasses.asdict(self.parameters),
            "multipliers": self._multipliers.clone(),
            "penalties": None if self._penalties is None else self._penalties.clone(),
            "skips": None if self._skips is None else self._skips.clone(),
            "centre": self._primal.centre_state(),
            "step": self._step,
            "base": [deepcopy(optimizer.state_dict()) for optimizer in self._optimizers()],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state, by copy.

        Raises
        ------
        ArgumentError
            If it is of another method, another number of constraints or another model.  Nothing has changed then.
        """
        absent = [key for key in ("kind", "m", "flat", "tensors", "multipliers", "base") if key not in state_dict]
        if absent:
            raise ArgumentError("state_dict", f"has no {absent[0]!r}", f"one of {self.kind}.state_dict()")
        for key, mine in (("kind", self.kind), ("m", self.m), ("flat", self._flat)):
            if state_dict[key] != mine:
                raise ArgumentError("state_dict", f"its {key} is {state_dict[key]!r}, not {mine!r}", "the same problem")
        if state_dict["tensors"] != self._primal.shapes():
            raise ArgumentError("state_dict", "is of a model with parameters of other shapes", "the same model")
        saved = state_dict["multipliers"]
        if saved.shape != self._multipliers.shape and not self._loose_shape:
            raise ArgumentError("state_dict", f"has multipliers of shape {tuple(saved.shape)}", "the same problem")
        parameters = self.parameters_class(**state_dict["parameters"])
        self._primal.check_centre(state_dict["centre"])
        for optimizer, base in zip(self._optimizers(), state_dict["base"], strict=True):
            optimizer.load_state_dict(deepcopy(base))
        self.parameters = parameters
        self._lay(tuple(saved.shape))
        self._multipliers.copy_(saved)
        if self._penalties is not None:
            self._penalties.copy_(state_dict["penalties"])
        skips = state_dict["skips"]
        self._skips = None if skips is None else skips.to(self._device).clone()
        self._primal.load_centre(state_dict["centre"])
        self._step = int(state_dict["step"])
