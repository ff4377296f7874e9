"""Section 3.1 and note 7 of appendix B.2 of the second paper: the bias of mini-batches, by exact enumeration.

Expectations over batches are sums over all of them, on small populations, and on all rows of data sets by convolution.
What SPBM then does is simulated in one variable, where its equilibrium is known, and on real rows with a network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairfront.datasets import info
from fairfront.errors import ArgumentError
from fairfront.pareto import erm_weights, scalarized, uniform_weights
from fairfront.plotting import FRONT, METHODS, PATH, panels, style
from fairfront.risks import GroupRisks
from fairfront.runs.ledger import Measurement
from fairfront.runs.progress import ProgressFunction
from fairfront.studies.instances import Instance
from fairfront.studies.parameters import StudyParameters, meta
from fairfront.theory.check import Check
from fairfront.threads import one_torch_thread

__all__ = [
    "TITLE",
    "Parameters",
    "datasets",
    "facts",
    "figure_boundaries",
    "figure_gap",
    "figure_limits",
    "figure_multipliers",
    "figure_training",
    "held",
    "measure",
    "run",
    "scalar_problem",
    "simulated",
    "table_boundaries",
    "table_clipping",
    "table_multipliers",
    "table_sampling",
    "table_statements",
    "table_training",
    "units",
]

TITLE = "The bias of mini-batches"
PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
SMALL_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
PARTS = ("exact", "simulated", "networks")
TABLES = (
    "statements",
    "cases",
    "limits",
    "boundaries",
    "multipliers",
    "clipping",
    "sampling",
    "objectives",
    "training",
)
DRAWN_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01)
HELD = (0.1, 0.02)
BATCH = 48
BARRIERS = ("ql", "qr")
# Three kinds of rows at x = 0: some batch violates, and no batch does.
ROWS = {"some batches violate": (-0.5, 0.3, 0.1), "no batch violates": (-0.5, -0.3, -0.1)}


@dataclass(frozen=True, kw_only=True)
class Parameters(StudyParameters):
    """What the study can be told; ``fairfront describe minibatch_bias`` shows the same in a table."""

    part: str = field(
        default="all", metadata=meta(help="what to compute: everything, or one part", choices=("all", *PARTS))
    )
    partition: tuple[str, ...] | None = field(
        default=None, metadata=meta(help="DATA:ATTRIBUTE with two groups: the rows of the exact constraint")
    )
    training: str | None = field(
        default=None, metadata=meta(help="DATA:ATTRIBUTE+ATTRIBUTE of the networks, merged to 6 groups")
    )
    epsilon: float = field(default=0.05, metadata=meta(help="bound of the gap in positive rates", low=0.0, high=0.5))
    l2: float = field(default=1e-3, metadata=meta(help="penalty of the scores' logistic model", low=1e-6, high=10.0))
    gamma: float = field(
        default=0.99, metadata=meta(help="SPBM in one variable: weight of the past", low=0.0, high=0.9999)
    )
    populations: int | None = field(default=None, metadata=meta(help="random populations of 6 rows", low=1, high=1000))
    points: int | None = field(default=None, metadata=meta(help="points x of each population", low=2, high=1000))
    batches: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="batch sizes of the enumeration", low=1, high=10)
    )
    pairs: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="rows of each group in a batch, on the data", low=1, high=1024)
    )
    sizes: tuple[int, ...] | None = field(
        default=None, metadata=meta(help="batch sizes of SPBM in one variable", low=1, high=256)
    )
    floors: tuple[float, ...] | None = field(
        default=None, metadata=meta(help="lower bounds of p of SPBM in one variable", low=1e-4, high=0.9)
    )
    steps: int | None = field(default=None, metadata=meta(help="steps of SPBM in one variable", low=50, high=1000000))
    replicas: int | None = field(default=None, metadata=meta(help="replicas of it", low=2, high=100000))
    epochs: int | None = field(default=None, metadata=meta(help="epochs of the networks", low=1, high=1000))
    epoch_batches: int | None = field(default=None, metadata=meta(help="batches an epoch", low=1, high=100000))
    seeds: int | None = field(default=None, metadata=meta(help="seeds of the networks", low=1, high=100))

    def __post_init__(self) -> None:
        """Check what no single field can."""
        super().__post_init__()
        named = [("partition", words) for words in self.partition or ()]
        named += [("training", self.training)] if self.training else []
        for name, words in named:
            if info(Instance.parse(words).data).task != "classification":
                raise ArgumentError(name, f"{words} is no classification task", "another data set")

    def instances(self) -> tuple[tuple[str, ...], Instance]:
        """Return the partitions of the exact constraint, and the instance of the networks."""
        filled = self.resolved()
        assert filled.partition is not None and filled.training is not None
        return filled.partition, Instance.parse(filled.training, groups=6)


def datasets(parameters: Parameters) -> tuple[str, ...]:
    """Return the names of the data sets that the study reads."""
    partition, training = parameters.instances()
    return tuple(dict.fromkeys([*(Instance.parse(words).data for words in partition), training.data]))


def units(parameters: Parameters) -> tuple[Parameters, ...]:
    """Return the parts of the work at the full sizes: enumeration, simulation, and the networks of a seed each."""
    parameters = parameters.resolved()
    assert parameters.seeds is not None
    if parameters.part == "all" and parameters.profile == "full":
        return tuple(unit for part in PARTS for unit in units(dataclasses.replace(parameters, part=part)))
    if parameters.part == "networks":
        seeds = range(parameters.seed, parameters.seed + parameters.seeds)
        return tuple(dataclasses.replace(parameters, seed=seed, seeds=1) for seed in seeds)
    return (parameters,)


def run(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    """Return the study's tables.

    Parameters
    ----------
    parameters : Parameters
        What to compute; fields left at None take their profile's value.
    progress : callable
        ``progress(iterable, description, total=None)`` yields the items and shows where it is.

    Returns
    -------
    dict of DataFrame
        statements: claim, population, statement, measured, bound, holds, cases.
        cases: a row per population of the enumeration, function, x, batch and penalty, see
        `fairfront.theory.minibatch_bias.Case`, with bound and quadratic.
        limits: the same on rows and populations for which B grows or p falls.
        boundaries: a row per data set, pairs and penalty: the offset at which the transformed constraint is active, the
        true constraint and the loss there, and the true constraint where the multiplier rests; pairs 0: the original.
        multipliers: a row per batch and penalty of the problem in one variable: exact, closed form, equilibrium,
        simulated.
        clipping: a row per rule and floor l_c of that problem: steps to feasibility, end of the run.
        sampling: note 7: expectations of the objective.
        objectives: the logistic model that minimises each objective, and the batch's effective size, 1 / sum of w^2.
        training: a row per run and epoch of the networks.
    """
    parameters = parameters.resolved()
    tables = {name: pd.DataFrame() for name in TABLES}
    make = {"exact": _exact, "simulated": _in_one_variable, "networks": _networks}
    for part in PARTS if parameters.part == "all" else (parameters.part,):
        tables |= make[part](parameters, progress)
    return tables


def _exact(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    from fairfront.theory import minibatch_bias as theory

    generator = np.random.default_rng(parameters.seed)
    statements: list[dict[str, Any]] = []

    def add(claim: str, population: str, checks: Iterable[Check]) -> None:
        for check in checks:
            row = {"claim": claim, "population": population, "statement": check.statement, "measured": check.measured}
            statements.append(row | {"bound": check.bound, "holds": check.holds, "cases": check.cases})

    scored = {words: _scored(words, parameters) for words in parameters.instances()[0]}
    cases = {
        "synthetic": list(progress(_synthetic(parameters, generator), "batches of synthetic rows")),
        "real rows, few": list(_few_rows(scored, parameters, generator)),
        "real rows, all": list(progress(_all_rows(scored, parameters), "batches of all rows")),
    }
    for population, found in cases.items():
        add("spbm-prop1", population, (theory.containment(found), theory.dominance(found)))
        bounds = (theory.gap_nonnegative(found), theory.gap_at_most(found), theory.tight(found))
        add("spbm-prop2", population, bounds)
        add("spbm-bias-limits", population, (theory.bound_at_floor(found),))
        add("spbm-lc-tradeoff", population, (theory.nested(found),))
    growing = list(_growing_batches(scored, parameters))
    falling = list(_falling_penalties(scored))
    add("spbm-bias-limits", "real rows, all", (theory.rate_in_batch(growing),))
    add("spbm-bias-limits", "synthetic", (theory.growth_in_penalty(falling), theory.vanishing_in_penalty(falling)))
    sampling = list(_sampling(scored, generator))
    add(
        "spbm-note7", "small populations and data", (theory.balanced_bias(sampling), theory.weighted_unbiased(sampling))
    )
    return {
        "statements": pd.DataFrame(statements),
        "cases": _frame(cases),
        "limits": _frame({"growing": growing, "falling": falling}),
        "boundaries": pd.DataFrame(progress(_boundaries(scored, parameters), "bounds of the transformed constraint")),
        "sampling": pd.DataFrame(sampling),
        "objectives": pd.DataFrame(_objectives(parameters)),
    }


def _in_one_variable(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    generator = np.random.default_rng([parameters.seed, 1])
    return {
        "multipliers": pd.DataFrame(progress(_multipliers(parameters, generator), "multipliers in one variable")),
        "clipping": pd.DataFrame(progress(_clipping(parameters, generator), "lower bounds of p in one variable")),
    }


def _networks(parameters: Parameters, progress: ProgressFunction) -> dict[str, pd.DataFrame]:
    with one_torch_thread():
        return {"training": pd.concat(list(_training(parameters, progress)), ignore_index=True)}


def _frame(cases: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame(
        dataclasses.asdict(c) | {"population": population, "bound": c.bound, "quadratic": c.quadratic}
        for population, found in cases.items()
        for c in found
    )


# --- enumeration -----------------------------------------------------------------------------------------------------


def _scored(words: str, parameters: Parameters) -> Any:
    """Return the two groups' logits under the logistic model of all rows, the group with the higher rate first."""
    from fairfront.theory import minibatch_bias as theory

    data = Instance.parse(words).load(0.0)
    if data.n_groups != 2:
        raise ArgumentError("partition", f"{words} has {data.n_groups} groups", "an attribute with two")
    risks = GroupRisks.from_data(data, l2=parameters.l2)
    scores = scalarized(risks, "erm", erm_weights(risks.group_sizes)).model.point.scores
    parts = [(scores[risks.groups == a], risks.y[risks.groups == a]) for a in (0, 1)]
    parts.sort(key=lambda part: -float((1 / (1 + np.exp(-part[0]))).mean()))
    (high, high_labels), (low, low_labels) = parts
    return theory.Offset(high, low, high_labels, low_labels, parameters.epsilon)


def _synthetic(parameters: Parameters, generator: np.random.Generator) -> Iterator[Any]:
    """Yield the cases of random populations of six rows g(x, row) = a x + b, with and without replacement."""
    from fairfront.theory import minibatch_bias as theory

    assert parameters.populations is not None and parameters.points is not None and parameters.batches is not None
    for number in range(parameters.populations):
        slopes, offsets = -generator.exponential(1.0, 6), generator.normal(size=6)
        middle = -offsets.mean() / slopes.mean()
        for x in middle + np.linspace(-1.0, 2.0, parameters.points):
            for batch in parameters.batches:
                for replace in (True, False):
                    if batch <= 6:
                        law = theory.enumerated(slopes * x + offsets, batch, replace=replace)
                        name = f"population {number + 1}, {'independent rows' if replace else 'subsets'}"
                        yield from _cases(name, x, batch, law, PENALTIES)


def _few_rows(scored: dict[str, Any], parameters: Parameters, generator: np.random.Generator) -> Iterator[Any]:
    """Yield the cases of five rows of each group of the data, every batch enumerated."""
    from fairfront.theory import minibatch_bias as theory

    assert parameters.batches is not None and parameters.points is not None
    for words, offset in scored.items():
        high, low = (generator.choice(z, 5, replace=False) for z in (offset.high, offset.low))
        for x in np.linspace(-1.0, 6.0, parameters.points):
            for batch in (b for b in parameters.batches if b <= 4):
                laws = (theory.enumerated(1 / (1 + np.exp(-z)), batch) for z in (high, low + x))
                first, second = laws
                yield from _cases(f"{words}, 5 + 5 rows", x, batch, first.minus(second, offset.epsilon), PENALTIES)


def _all_rows(scored: dict[str, Any], parameters: Parameters) -> Iterator[Any]:
    """Yield the cases of all rows of the data."""
    assert parameters.pairs is not None and parameters.points is not None
    for words, offset in scored.items():
        for x in offset.edge + np.linspace(-1.5, 3.0, parameters.points):
            for pairs in parameters.pairs[:: max(1, len(parameters.pairs) // 3)]:
                yield from _cases(words, x, pairs, offset.law(x, pairs), PENALTIES)


def _cases(subject: str, x: float, batch: int, law: Any, penalties: Iterable[float]) -> Iterator[Any]:
    from fairfront.theory import minibatch_bias as theory

    for phi in BARRIERS:
        for penalty in penalties:
            yield theory.case(subject, phi, x, batch, penalty, law)


def _growing_batches(scored: dict[str, Any], parameters: Parameters) -> Iterator[Any]:
    assert parameters.pairs is not None
    for words, offset in scored.items():
        x = offset.edge
        for pairs in (*parameters.pairs, 4 * max(parameters.pairs), 8 * max(parameters.pairs)):
            yield from _cases(words, x, pairs, offset.law(x, pairs), (1.0, 0.1, 0.03))


def _falling_penalties(scored: dict[str, Any]) -> Iterator[Any]:
    from fairfront.theory import minibatch_bias as theory

    for name, values in ROWS.items():
        for batch in (2, 4):
            yield from _cases(name, 0.0, batch, theory.enumerated(values, batch), SMALL_PENALTIES)
    for words, offset in scored.items():
        x = offset.edge
        yield from _cases(words, x, 8, offset.law(x, 8), SMALL_PENALTIES)


def _boundaries(scored: dict[str, Any], parameters: Parameters) -> Iterator[dict[str, Any]]:
    assert parameters.pairs is not None
    for words, offset in scored.items():
        x = offset.edge
        yield _boundary_row(words, offset, 0, np.nan, x, x)
        for pairs in [b for b in parameters.pairs if 4 <= b <= 64]:
            for penalty in DRAWN_PENALTIES:
                x, rest = offset.boundary(pairs, penalty), offset.rest(pairs, penalty)
                yield _boundary_row(words, offset, pairs, penalty, x, rest)


def _boundary_row(words: str, offset: Any, pairs: int, penalty: float, x: float, rest: float) -> dict[str, Any]:
    row = {"data": words, "pairs": pairs, "penalty": penalty, "offset": x, "expected": offset.gap(x)}
    return row | {"loss": offset.loss(x), "rest": offset.gap(rest), "rest_loss": offset.loss(rest)}


# --- SPBM in one variable --------------------------------------------------------------------------------------------


def scalar_problem() -> Any:
    """Return the problem in one variable: x* = 1, Var(g) = 0.12 there, and rows with a large g have a steep slope."""
    from fairfront.theory import minibatch_bias as theory

    slopes, shares = np.array([-3.0, -1.0, -0.3]), np.array([0.2, 0.5, 0.3])
    return theory.ScalarProblem(0.0, slopes, np.array([0.6, 0.0, -0.4]) - slopes, shares)


def simulated(
    parameters: Parameters,
    generator: np.random.Generator,
    batch: int,
    *,
    start: float,
    multiplier: float,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return x and lambda of all replicas at every step: one optimiser whose coordinates do not touch each other."""
    import torch

    from fairfront.constrained import SPBM

    assert parameters.steps is not None and parameters.replicas is not None
    problem, size = scalar_problem(), parameters.replicas
    x = torch.full((size,), start, dtype=torch.float64, requires_grad=True)
    optimizer = SPBM(
        [x], size, base=torch.optim.SGD, lr=0.02, mu=0.0, gamma=parameters.gamma, lambda_init=multiplier, **options
    )
    xs, multipliers = np.empty((parameters.steps, size)), np.empty((parameters.steps, size))
    for step in range(parameters.steps):
        counts = generator.multinomial(batch, problem.shares, size=size) / batch
        slope, offset = (torch.from_numpy(counts @ part) for part in (problem.slopes, problem.offsets))
        optimizer.zero_grad()
        optimizer.step(0.5 * ((x - problem.centre) ** 2).sum(), slope * x + offset)
        xs[step], multipliers[step] = x.detach().numpy(), optimizer.multipliers.numpy()
    return xs, multipliers


def _multipliers(parameters: Parameters, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    from fairfront.theory import minibatch_bias as theory

    problem = scalar_problem()
    assert parameters.sizes is not None
    slope = float(problem.shares @ problem.slopes)
    for penalty in (1.0, 0.1):
        for batch in parameters.sizes:
            rests = theory.equilibrium(problem, batch, penalty, "ql")
            xs, multipliers = simulated(
                parameters, generator, batch, start=1.0, multiplier=rests.multiplier, **held(penalty)
            )
            tail = slice(len(xs) // 2, None)
            means = multipliers[tail].mean(axis=0)
            yield {
                "penalty": penalty,
                "batch": batch,
                "exact": problem.multiplier,
                "closed_form": theory.multiplier_on_quadratic(problem, batch, penalty),
                "equilibrium": rests.multiplier,
                "simulated": float(means.mean()),
                "error": float(means.std(ddof=1) / np.sqrt(len(means))),
                "rest": slope * (rests.x - 1.0),
                "boundary": slope * (rests.boundary - 1.0),
                "simulated_g": slope * (float(xs[tail].mean()) - 1.0),
            }


def _clipping(parameters: Parameters, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield what a floor of p does from a violated start with batches of 8: under ADAPT, and where p stays there."""
    from fairfront.theory import minibatch_bias as theory

    problem = scalar_problem()
    slope = float(problem.shares @ problem.slopes)
    assert parameters.floors is not None
    same = int(generator.integers(2**31))  # the same batches for every floor
    for rule in ("adapt", "constant"):
        for floor in sorted(parameters.floors, reverse=True):
            box = {"penalty_min": floor} if rule == "adapt" else held(floor)
            draws = np.random.default_rng(same)
            xs, _ = simulated(parameters, draws, 8, start=0.0, multiplier=0.01, kappa=0.9, **box)
            feasible = xs >= problem.solution
            first = np.where(feasible.any(axis=0), feasible.argmax(axis=0), len(xs))
            tail = xs[len(xs) // 2 :]
            yield {
                "rule": rule,
                "floor": floor,
                "first": float(np.median(first)),
                "feasible": float((tail >= problem.solution).mean()),
                "expected": slope * (float(tail.mean()) - 1.0),
                "objective": float((0.5 * tail**2).mean()),
                "boundary": slope * (theory.equilibrium(problem, 8, floor, "ql").boundary - 1.0),
            }


def held(penalty: float) -> dict[str, Any]:
    """Return the parameters of SPBM that keep p where it is."""
    return {"rule": "constant", "penalty_init": penalty, "penalty_min": penalty, "penalty_max": 2 * penalty}


# --- note 7 and training ---------------------------------------------------------------------------------------------


def _sampling(scored: dict[str, Any], generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the expectations of group-balanced batches: small populations enumerated, and data group by group."""
    from fairfront.theory import minibatch_bias as theory

    for sizes, batch in (((6, 4, 2), 6), ((7, 2), 5), ((5, 5, 3, 2), 8)):
        groups = np.repeat(np.arange(len(sizes)), sizes)
        losses = generator.exponential(size=len(groups)) * (1.0 + groups)
        for replace in (True, False):
            found = theory.balanced_expectations(losses, groups, batch, replace=replace)
            name = f"groups of {', '.join(map(str, sizes))}, batch {batch}"
            yield {"subject": name, "rows": "independent" if replace else "subsets"} | found
    for words, offset in scored.items():
        parts = ((offset.high, offset.high_labels), (offset.low, offset.low_labels))
        losses = np.concatenate([np.logaddexp(0.0, z) - y * z for z, y in parts])
        groups = np.repeat([0, 1], [len(offset.high), len(offset.low)])
        # One row of each group: the expectation over batches of more is the same, row by row.
        found = theory.balanced_expectations(losses, groups, 2)
        yield {"subject": words, "rows": "independent"} | found


def _training(parameters: Parameters, progress: ProgressFunction) -> Iterator[pd.DataFrame]:
    """Yield each network's history: Adam and SPBM with both objectives, and SPBM with p held at a floor."""
    from fairfront.constrained import PairwiseGroups, PenalizedParameters, Rows, SPBMParameters, train_mlp

    assert parameters.epochs is not None and parameters.epoch_batches is not None and parameters.seeds is not None
    data = parameters.instances()[1].load(0.0)
    X, y, groups = data.rows("all")
    rows = Rows.of(X[:, 1:], y, groups)
    spbm = SPBMParameters(gamma=0.9, kappa=0.9, mu=2.0, lambda_init=0.1)
    adam = PenalizedParameters(beta=0.0)
    settings: list[tuple[str, str, str, Any]] = [("adam", "", name, adam) for name in ("population", "balanced")]
    settings += [("spbm", "ADAPT", name, spbm) for name in ("population", "balanced")]
    for penalty in HELD:
        settings.append(("spbm", f"p = {penalty:g}", "population", dataclasses.replace(spbm, **held(penalty))))
    seeds = range(parameters.seed, parameters.seed + parameters.seeds)
    jobs = [(*setting, seed) for setting in settings for seed in seeds]
    for method, rule, objective, chosen, seed in progress(jobs, "networks", len(jobs)):
        found = train_mlp(
            rows,
            PairwiseGroups(data.n_groups, epsilon=0.1),
            parameters=chosen,
            lr=0.005,
            hidden=(64, 16),
            batch_size=BATCH,
            epochs=parameters.epochs,
            epoch=parameters.epoch_batches,
            seed=seed,
            objective=objective,
        )
        head = {"method": method, "rule": rule, "objective": objective, "seed": seed}
        history = found.history[["epoch", "step", "objective", "max_constraint", "penalty_min", "lambda_max"]]
        yield history.rename(columns={"objective": "loss"}).assign(**head)


def _objectives(parameters: Parameters) -> Iterator[dict[str, Any]]:
    """Yield what minimises each objective among logistic models: exact, so that only the bias tells them apart."""
    import torch

    from fairfront.constrained import GroupSampler

    data = parameters.instances()[1].load(0.0)
    risks = GroupRisks.from_data(data, l2=parameters.l2)
    sampler = GroupSampler(data.groups, BATCH, generator=torch.Generator().manual_seed(0))
    shares = erm_weights(risks.group_sizes)
    for objective, lam in (("population", shares), ("balanced", uniform_weights(risks.n_groups))):
        model = scalarized(risks, objective, lam).model
        z = model.point.scores
        weights = sampler.weights(objective, torch.float64)  # type: ignore[arg-type]
        yield {
            "objective": objective,
            "loss": float((np.logaddexp(0.0, z) - risks.y * z).mean()),
            "effective": float(1.0 / (weights**2).sum()),
            "batch": BATCH,
        }


# --- tables and verdicts ---------------------------------------------------------------------------------------------


def table_statements(tables: dict[str, pd.DataFrame], *claims: str) -> pd.DataFrame:
    """Return the checks of some claims, a row a population and statement."""
    mine = tables["statements"][tables["statements"].claim.isin(claims)]
    return mine.drop(columns="claim").reset_index(drop=True)


def table_boundaries(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return, per data set, pairs and p, the tightening and the price of the transformed constraint."""
    frame = tables["boundaries"]
    original = frame[frame.pairs == 0].set_index("data").loss
    mine = frame[(frame.pairs > 0) & frame.penalty.isin((1.0, 0.1, 0.01))]
    return pd.DataFrame(
        {
            "data": mine.data,
            "rows of each group": mine.pairs,
            "p": mine.penalty,
            "E[g] at its bound": mine.expected,
            "loss above the optimum": mine.loss - mine.data.map(original),
            "E[g] where lambda rests": mine["rest"].where(mine["rest"].abs() > 1e-8, 0.0),
        }
    ).reset_index(drop=True)


def table_multipliers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the multiplier of the problem in one variable: exact, predicted and simulated."""
    frame = tables["multipliers"]
    return pd.DataFrame(
        {
            "p": frame.penalty,
            "B": frame.batch,
            "lambda*": frame.exact,
            "closed form": frame.closed_form,
            "equilibrium": frame.equilibrium,
            "simulated": frame.simulated,
            "E[g], rest": frame["rest"].where(frame["rest"].abs() > 1e-12, 0.0),
            "E[g], SPBM": frame.simulated_g,
            "E[g], bound": frame.boundary,
        }
    )


def table_clipping(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what the floor of p does to SPBM in one variable."""
    names = {
        "floor": "l_c",
        "first": "steps to feasibility",
        "feasible": "share of feasible iterates",
        "expected": "mean E[g]",
        "objective": "mean f",
        "boundary": "E[g] at the bound",
    }
    return tables["clipping"].rename(columns=names)


def table_sampling(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the expectations of note 7."""
    names = {"population": "all rows", "groups": "mean of the groups", "balanced": "unweighted batch"}
    return tables["sampling"].rename(columns=names | {"weighted": "weighted batch"})


def table_training(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the networks at the end, means over seeds: loss over all rows, largest constraint, smallest p."""
    training = tables["training"]
    keys = ["method", "rule", "objective"]
    last = training.groupby([*keys, "seed"], sort=False).tail(1)
    columns = ["loss", "max_constraint", "penalty_min"]
    return last.groupby(keys, sort=False)[columns].mean().reset_index()


def facts(tables: dict[str, pd.DataFrame], parameters: Parameters) -> dict[str, str]:
    """Return the numbers that the chapter's prose and captions quote, as words, by name."""
    parameters = parameters.resolved()
    if parameters.part != "all":
        raise ArgumentError("part", f"is {parameters.part!r}, but the chapter quotes every part", "all")
    statements, cases, boundaries = tables["statements"], tables["cases"], tables["boundaries"]
    titles = "; ".join(Instance.parse(words).title for words in parameters.instances()[0])
    first = boundaries[boundaries.data == parameters.instances()[0][0]]
    original = first[first.pairs == 0].iloc[0]
    few = first[(first.pairs == first[first.pairs > 0].pairs.min())].set_index("penalty")
    held_at = first[first.penalty == 0.1].set_index("pairs")
    paper = held_at.to_dict("index")[8 if 8 in held_at.index else held_at.index[0]]
    small = tables["multipliers"].sort_values(["penalty", "batch"]).iloc[0]
    wide = tables["multipliers"][tables["multipliers"].penalty == 1.0]
    clipping = tables["clipping"].set_index("floor")
    adapt, constant = (clipping[clipping.rule == rule] for rule in ("adapt", "constant"))
    training = {
        (row["method"], row["rule"], row["objective"]): row for row in table_training(tables).to_dict("records")
    }
    objectives = tables["objectives"].set_index("objective")
    sampling = tables["sampling"]
    on_data = sampling[sampling.subject == parameters.instances()[0][0]].iloc[0]
    profile = f"profile {parameters.profile}"
    return {
        "setting": (
            f"synthetic populations of 6 rows ({parameters.populations}), 5 + 5 rows and all rows of {titles}; "
            f"{profile}; variant: positive rates, bound {parameters.epsilon:g}, logistic scores with an offset for one "
            f"group"
        ),
        "setting_limits": (
            f"synthetic populations of 3 rows, and all rows of {titles} at the bound of the constraint; {profile}; "
            f"variant: positive rates, bound {parameters.epsilon:g}, QL"
        ),
        "setting_boundaries": (
            f"all rows of {titles}; {profile}; variant: positive rates, bound {parameters.epsilon:g}, QL, an offset "
            f"for the group with the lower rate"
        ),
        "setting_multipliers": (
            f"synthetic: the problem in one variable, {parameters.replicas:,} replicas, {parameters.steps:,} steps; "
            f"{profile}; variant: QL, p constant, gamma {parameters.gamma:g}, plain gradient steps"
        ),
        "setting_training": (
            f"{parameters.instances()[1].title}, all rows, network 64-16, positive rates within "
            f"0.1, {parameters.seeds} seed{'s' if parameters.seeds != 1 else ''}; {profile}; variant: QL, ADAPT, "
            f"gamma 0.9, kappa 0.9, mu 2"
        ),
        "cases": f"{len(cases):,}",
        "contained": f"{int(statements[statements.statement.str.startswith('largest E[g]')].cases.sum()):,}",
        "quadratic_cases": f"{int(cases.quadratic.sum()):,}",
        "tight_gap": f"{statements[statements.statement.str.contains('quadratic branch')].measured.max():.0e}",
        "least_ratio": f"{(cases.gap / cases.bound).min():.2g}",
        "few_pairs": f"{int(few.pairs.iloc[0])}",
        "tightened": f"{-few.loc[0.01].expected:.2f}",
        "price_small": f"{few.loc[0.01].loss:.3f}",
        "price_none": f"{original.loss:.3f}",
        "paper_pairs": f"{8 if 8 in held_at.index else held_at.index[0]}",
        "paper_share": f"{-paper['expected'] / parameters.epsilon:.1f}",
        "paper_tightened": f"{-paper['expected']:.3f}",
        "paper_rest": f"{-paper['rest']:.3f}",
        "epsilon": f"{parameters.epsilon:g}",
        "exact_lambda": f"{small.exact:.3f}",
        "small_lambda": f"{small.simulated:.3f}",
        "small_lambda_predicted": f"{small.equilibrium:.3f}",
        "small_batch": f"{int(small.batch)}",
        "wide_gap": f"{(wide.equilibrium - wide.simulated).abs().max():.1g}",
        "first_large": f"{adapt['first'].iloc[0]:.0f}",
        "first_small": f"{adapt['first'].iloc[-1]:.0f}",
        "floor_large": f"{adapt.index[0]:g}",
        "floor_small": f"{adapt.index[-1]:g}",
        "adapt_large": f"{adapt.objective.iloc[0]:.3f}",
        "adapt_small": f"{adapt.objective.iloc[-1]:.3f}",
        "constant_large": f"{constant.objective.iloc[0]:.3f}",
        "constant_small": f"{constant.objective.iloc[-1]:.3f}",
        "sampling_population": f"{on_data.population:.4f}",
        "sampling_balanced": f"{on_data.balanced:.4f}",
        "exact_balanced": f"{objectives.loss['balanced']:.4f}",
        "exact_weighted": f"{objectives.loss['population']:.4f}",
        "batch": f"{BATCH}",
        "effective": f"{objectives.effective['population']:.1f}",
        "adam_balanced": f"{training['adam', '', 'balanced']['loss']:.4f}",
        "adam_weighted": f"{training['adam', '', 'population']['loss']:.4f}",
        "spbm_balanced": f"{training['spbm', 'ADAPT', 'balanced']['loss']:.4f}",
        "spbm_weighted": f"{training['spbm', 'ADAPT', 'population']['loss']:.4f}",
        "spbm_violation": f"{training['spbm', 'ADAPT', 'population']['max_constraint']:+.3f}",
        "held_loss": f"{training['spbm', f'p = {HELD[-1]:g}', 'population']['loss']:.4f}",
        "held_violation": f"{training['spbm', f'p = {HELD[-1]:g}', 'population']['max_constraint']:+.3f}",
        "held": f"{HELD[-1]:g}",
        "adapt_penalty": f"{training['spbm', 'ADAPT', 'population']['penalty_min']:.2f}",
    }


def measure(tables: dict[str, pd.DataFrame], parameters: Parameters) -> tuple[Measurement, ...]:
    """Return what the tables say of the paper's claims; nothing where a single part was computed."""
    parameters = parameters.resolved()
    if parameters.part != "all":
        return ()
    titles = "; ".join(Instance.parse(words).title for words in parameters.instances()[0])
    data = f"synthetic populations; {titles}: few rows and all rows, every batch"
    return (
        _theorem(tables, "spbm-prop1", data),
        _theorem(tables, "spbm-prop2", data),
        _limits(tables, data),
        _tradeoff(tables, data),
        _note7(tables, f"small populations; {titles}; {parameters.instances()[1].title}"),
    )


def _theorem(tables: dict[str, pd.DataFrame], claim: str, data: str) -> Measurement:
    mine = tables["statements"][tables["statements"].claim == claim]
    failing = mine[~mine.holds]
    if claim == "spbm-prop1":
        inside = mine[mine.statement.str.startswith("largest E[g]")]
        measured = (
            f"largest E[g] where the transformed constraint holds: {inside.measured.max():.1e}, "
            f"in {inside.cases.sum():,} cases"
        )
    else:
        ratio = mine[mine.statement.str.startswith("largest gap")]
        equal = mine[mine.statement.str.contains("quadratic branch")]
        measured = (
            f"largest gap over bound {ratio.measured.max():.6f} in {ratio.cases.sum():,} cases; on the quadratic "
            f"branch equal to {equal.measured.max():.0e} in {equal.cases.sum():,}"
        )
    if len(failing):
        return Measurement(claim, measured, "not reproduced", _listed(failing), data)
    return Measurement(claim, measured, "reproduced", "", data)


def _listed(failing: pd.DataFrame) -> str:
    return "; ".join(f"{row.population}: {row.statement}" for row in failing.itertuples())


def _limits(tables: dict[str, pd.DataFrame], data: str) -> Measurement:
    mine = tables["statements"][tables["statements"].claim == "spbm-bias-limits"]
    failing, vanishing = mine[~mine.holds], mine[mine.statement.str.contains("every batch satisfies")]
    rate = mine[mine.statement.str.contains("in B")].measured.max()
    grows = mine[mine.statement.str.contains("some batch violates")].measured.max()
    floor = mine[mine.statement.str.contains("l_c")].measured.max()
    measured = (
        f"slope in B within {rate:.2g} of -1; slope in p within {grows:.2g} of -1 where some batch violates; "
        f"largest gap over Var(g)/(2 B l_c): {floor:.6f}"
    )
    if len(failing):
        return Measurement("spbm-bias-limits", measured, "not reproduced", _listed(failing), data)
    if vanishing.cases.sum():
        reason = "where every batch satisfies the constraint the gap vanishes as p goes to 0, like p (QL) or p^2 (QR)"
        return Measurement("spbm-bias-limits", measured, "reproduced in part", reason, data)
    return Measurement("spbm-bias-limits", measured, "reproduced", "", data)


def _tradeoff(tables: dict[str, pd.DataFrame], data: str) -> Measurement:
    mine = tables["statements"][tables["statements"].claim == "spbm-lc-tradeoff"]
    bounds = tables["boundaries"][tables["boundaries"].pairs > 0].sort_values("penalty")
    dearer = bounds.groupby(["data", "pairs"]).loss.apply(lambda loss: bool((loss.diff().dropna() <= 0).all()))
    clipping = tables["clipping"][tables["clipping"].rule == "adapt"].sort_values("floor")
    parts = {
        "the feasible sets are not nested": bool(mine.holds.all()),
        "a smaller p does not cost more": bool(dearer.all()),
        "a smaller floor is not sooner feasible": bool((clipping["first"].diff().dropna() >= 0).all()),
    }
    measured = (
        f"feasible sets nested in p in {mine.cases.sum():,} pairs; loss at the transformed bound rises as p falls in "
        f"{dearer.sum()} of {len(dearer)} settings; SPBM in one variable feasible after "
        f"{clipping['first'].iloc[0]:.0f} steps with l_c = {clipping.floor.iloc[0]:g}, "
        f"{clipping['first'].iloc[-1]:.0f} with {clipping.floor.iloc[-1]:g}; in the long run ADAPT lets p rise again, "
        f"and the mean objective is the same ({clipping.objective.min():.3f} to "
        f"{clipping.objective.max():.3f})"
    )
    failing = [reason for reason, holds in parts.items() if not holds]
    if failing:
        verdict = "reproduced in part" if mine.holds.all() and dearer.all() else "not reproduced"
        return Measurement("spbm-lc-tradeoff", measured, verdict, "; ".join(failing), data)
    remark = "SPBM itself rests where E[phi'(gbar/p)] = 1, which is short of the transformed bound"
    return Measurement("spbm-lc-tradeoff", measured, "reproduced", remark, data)


def _note7(tables: dict[str, pd.DataFrame], data: str) -> Measurement:
    mine = tables["statements"][tables["statements"].claim == "spbm-note7"]
    sampling, objectives = tables["sampling"], tables["objectives"].set_index("objective").loss
    bias = ((sampling.balanced - sampling.population).abs() / sampling.population.abs()).max()
    adam = table_training(tables).query("method == 'adam'").set_index("objective").loss
    measured = (
        f"expectation of unweighted batches off by up to {bias:.0%}, weighted by at most "
        f"{mine[mine.statement.str.contains('weighted by group')].measured.max():.0e}; loss over all rows of the "
        f"logistic model that minimises each: {objectives['balanced']:.4f} unweighted, {objectives['population']:.4f} "
        f"weighted; of a network after training {adam['balanced']:.4f} and {adam['population']:.4f}"
    )
    if not mine.holds.all():
        return Measurement("spbm-note7", measured, "not reproduced", _listed(mine[~mine.holds]), data)
    return Measurement("spbm-note7", measured, "reproduced", "", data)


# --- figures ---------------------------------------------------------------------------------------------------------


def figure_gap(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw every enumerated gap over its bound, against the smallest batch mean over p."""
    cases = tables["cases"]
    colours = {"synthetic": FRONT, "real rows, few": PATH, "real rows, all": "#009E73"}
    joints = {"ql": -0.5, "qr": -1 / 3}
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.1)
        for ax, phi in zip(axes[0], BARRIERS, strict=True):
            for population, colour in colours.items():
                mine = cases[(cases.phi == phi) & (cases.population == population)]
                place = (mine.least / mine.penalty).clip(-100, 10)
                ax.plot(
                    place,
                    mine.gap / mine.bound,
                    ".",
                    color=colour,
                    markersize=3,
                    alpha=0.35,
                    label=population,
                    rasterized=True,
                )
            ax.axvline(joints[phi], color="#000000", linewidth=1, linestyle="--")
            ax.axhline(1.0, color="#000000", linewidth=0.8)
            ax.set_xscale("symlog", linthresh=1.0)
            ax.set_xticks([-100, -10, -1, 0, 1, 10], ["-100", "-10", "-1", "0", "1", "10"])
            ax.minorticks_off()
            ax.set(title=phi.upper(), xlabel=r"smallest $\bar g / p$ of any batch", ylim=(-0.03, 1.1))
        axes[0, 0].set_ylabel("Jensen gap / bound")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=3, markerscale=3)
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1.0)
    return figure


def figure_limits(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the gap against B and against p, with its bounds."""
    limits = tables["limits"][tables["limits"].phi == "ql"]
    words = parameters.instances()[0][0]
    growing = limits[(limits.population == "growing") & (limits.subject == words)]
    falling = limits[limits.population == "falling"]
    shades = {1.0: "#56B4E9", 0.1: FRONT, 0.03: PATH}
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.4)
        ax = axes[0, 0]
        for penalty, colour in shades.items():
            mine = growing[growing.penalty == penalty].sort_values("batch")
            ax.loglog(mine.batch, mine.gap, color=colour, marker="o", markersize=4, label=f"p = {penalty:g}")
            ax.loglog(mine.batch, mine.bound, color=colour, linestyle=":", linewidth=1.2)
        ax.set(title="B grows", xlabel="B, rows of each group", ylabel="Jensen gap (dotted: bound)")
        ax.legend(loc="lower left")
        ax = axes[0, 1]
        looks = {
            "some batches violate": (2, PATH, "s"),
            words: (8, FRONT, "o"),
            "no batch violates": (2, "#009E73", "^"),
        }
        for subject, (batch, colour, marker) in looks.items():
            mine = falling[(falling.subject == subject) & (falling.batch == batch)].sort_values("penalty")
            ax.loglog(mine.penalty, mine.gap, color=colour, marker=marker, markersize=4, label=subject)
            ax.loglog(mine.penalty, mine.bound, color=colour, linestyle=":", linewidth=1.2)
        ax.set(title="p falls", xlabel="p", ylim=(1e-9, None))
        ax.invert_xaxis()
        ax.legend(loc="lower left", fontsize=8)
    return figure


def figure_boundaries(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw, against p, the true constraint and the loss at the transformed bound, a line for each batch."""
    boundaries = tables["boundaries"][tables["boundaries"].data == parameters.instances()[0][0]]
    original = boundaries[boundaries.pairs == 0].iloc[0]
    sizes = sorted(boundaries[boundaries.pairs > 0].pairs.unique())
    import matplotlib as mpl

    colours = [mpl.colormaps["viridis"](x) for x in np.linspace(0.0, 0.8, len(sizes))]
    titles = {"expected": "at the transformed bound", "rest": r"where $\lambda$ rests", "loss": "loss at that bound"}
    with style():
        figure, axes = panels(1, 3, width=2.75, height=3.0)
        for ax, (column, title) in zip(axes[0], titles.items(), strict=True):
            for size, colour in zip(sizes, colours, strict=True):
                mine = boundaries[boundaries.pairs == size].sort_values("penalty")
                ax.semilogx(mine.penalty, mine[column], color=colour, marker="o", markersize=4, label=f"B = {size}")
            level = original.loss if column == "loss" else 0.0
            ax.axhline(level, color="#000000", linestyle="--", linewidth=1, label="original constraint")
            ax.set(title=title, xlabel="p")
            ax.invert_xaxis()
        axes[0, 0].set_ylabel("E[g]")
        axes[0, 2].set_ylabel("mean cross-entropy")
        low = axes[0, 0].get_ylim()[0]
        axes[0, 1].set_ylim(low, axes[0, 0].get_ylim()[1])
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(sizes) + 1)
    return figure


def figure_multipliers(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the multiplier and the true constraint against B: predicted, simulated, and at the transformed bound."""
    multipliers = tables["multipliers"]
    colours = {1.0: FRONT, 0.1: PATH}
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.2)
        left, right = axes[0]
        sizes = sorted(multipliers.batch.unique())
        for penalty, colour in colours.items():
            mine = multipliers[multipliers.penalty == penalty].sort_values("batch")
            name = f"p = {penalty:g}"
            left.semilogx(mine.batch, mine.equilibrium, color=colour, label=f"{name}, equilibrium")
            left.semilogx(mine.batch, mine.closed_form, color=colour, linestyle=":", label=f"{name}, closed form")
            left.errorbar(
                mine.batch,
                mine.simulated,
                2 * mine.error,
                color=colour,
                marker="o",
                linestyle="none",
                markersize=5,
                label=f"{name}, SPBM",
            )
            right.semilogx(mine.batch, mine["rest"], color=colour)
            right.semilogx(mine.batch, mine.simulated_g, color=colour, marker="o", linestyle="none", markersize=5)
            right.semilogx(mine.batch, mine.boundary, color=colour, linestyle="--", linewidth=1.2)
        left.axhline(
            multipliers.exact.iloc[0], color="#000000", linewidth=1, linestyle=(0, (1, 1)), label=r"$\lambda^*$"
        )
        right.axhline(0.0, color="#000000", linewidth=1, linestyle=(0, (1, 1)))
        for ax in (left, right):
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(size) for size in sizes])
        left.set(xlabel="B", ylabel=r"mean of $\lambda$", ylim=(0, None))
        right.set(xlabel="B", ylabel="mean of E[g]")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def figure_training(tables: dict[str, pd.DataFrame], parameters: Parameters) -> Figure:
    """Draw the networks' loss over all rows and largest constraint by epoch, means over the seeds."""
    training = tables["training"]
    keys = ["method", "rule", "objective", "step"]
    mean = training.groupby(keys, sort=False)[["loss", "max_constraint"]].mean().reset_index()
    shades = {"ADAPT": METHODS["spbm"].colour, "p = 0.1": "#CC79A7", "p = 0.02": "#7A3300"}
    with style():
        figure, axes = panels(1, 2, width=3.6, height=3.4)
        for ax, column in zip(axes[0], ("loss", "max_constraint"), strict=True):
            for (method, rule, objective), mine in mean.groupby(keys[:3], sort=False):
                colour = METHODS["adam"].colour if method == "adam" else shades[str(rule)]
                line, word = ("--", "unweighted") if objective == "balanced" else ("-", "weighted")
                label = ", ".join(filter(None, (METHODS[str(method)].label, str(rule), word)))
                ax.plot(mine.step, mine[column], color=colour, linestyle=line, marker="o", markersize=3, label=label)
            ax.set(xlabel="step")
        axes[0, 0].set_ylabel("loss over all rows")
        axes[0, 1].axhline(0.0, color="#000000", linewidth=0.8)
        axes[0, 1].set_ylabel("largest g")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure
