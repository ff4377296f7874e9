"""The loop: schedule, history, report, early stop, checkpoint and resume, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from fairfront.constrained import SPBM, NormBounds, PairwiseGroups, PenalizedAdam, UserConstraints
from fairfront.constrained.networks import mlp
from fairfront.constrained.sampling import GroupSampler
from fairfront.constrained.schedules import WarmupCosine
from fairfront.constrained.training import EarlyStop, Rows, evaluate, kkt_report, row_losses, train, train_mlp
from fairfront.constrained.updates import PenalizedParameters, SPBMParameters, SSLALMParameters, SSwParameters
from fairfront.errors import ArgumentError, DataError, OutputError
from fairfront.runs.checkpoints import CheckpointFile

N_GROUPS = 3
METHODS = {
    "spbm": SPBMParameters(lambda_init=0.1, mu=1.0),
    "ssl_alm": SSLALMParameters(eta=0.1, mu=1.0),
    "ssw": SSwParameters(tolerance=0.05, horizon=20),
    "adam": PenalizedParameters(beta=0.0),
}


class Memory:
    """A checkpoint in memory that keeps everything that was ever written."""

    def __init__(self, content=None):
        self.kept = [] if content is None else [content]

    def read(self):
        return self.kept[-1] if self.kept else None

    def write(self, content):
        self.kept.append(content)


class Interrupted(Exception):
    pass


def interrupt(after):
    """Return a progress function that breaks off before an epoch."""

    def progress(items, description, total=None):
        for number, item in enumerate(items):
            if number == after:
                raise Interrupted
            yield item

    return progress


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    groups = rng.choice(N_GROUPS, 120, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(120, 4)) + groups[:, None] * 0.6
    y = x.sum(1) + rng.normal(size=120) > 2
    return Rows.of(x, y.astype(int), groups)


@pytest.fixture(scope="module")
def constraint():
    return PairwiseGroups(N_GROUPS, epsilon=0.05)


def short(rows, constraint, method="spbm", **options):
    settings = {"lr": 0.02, "hidden": (6,), "batch_size": 12, "epochs": 4} | options
    return train_mlp(rows, constraint, parameters=METHODS[method], **settings)


def norm_of(gradients):
    return math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))


def content(model):
    return b"".join(value.numpy().tobytes() for value in model.state_dict().values())


# ------------------------------------------------------------------------------------------------ schedule


@pytest.mark.parametrize("horizon", [100, 1000])
def test_the_schedule_is_stretched_over_the_horizon(horizon):
    schedule = WarmupCosine()
    factors = np.array([schedule.factor(step, horizon) for step in range(horizon)])
    peak = round(0.05 * horizon)
    assert factors[0] == pytest.approx(1 / 3)
    assert factors.argmax() == peak and factors[peak] == pytest.approx(1.0)
    assert np.allclose(np.diff(factors[: peak + 1], 2), 0, atol=1e-12)
    assert factors[peak + round(0.475 * horizon)] == pytest.approx(0.5, abs=0.01)
    assert 0 < factors[-1] < 0.02 and (np.diff(factors[peak:]) < 0).all()


def test_the_schedule_can_hold():
    assert WarmupCosine(warmup=0.0, decay=False).factor(99, 100) == 1.0


@pytest.mark.parametrize(
    ("argument", "value"),
    [("warmup", 1.0), ("warmup", -0.1), ("warmup", "a"), ("start", 0.0), ("start", 2.0), ("start", None)],
)
def test_bad_schedules_are_named(argument, value):
    with pytest.raises(ArgumentError, match=argument):
        WarmupCosine(**{argument: value})


def test_the_learning_rate_follows_the_schedule(rows, constraint):
    result = short(rows, constraint, epochs=5)
    steps = result.history["step"].to_numpy()
    expected = [WarmupCosine().factor(step - 1, steps[-1]) for step in steps]
    assert result.history["lr"].tolist() == expected


# ------------------------------------------------------------------------------------------------- history


@pytest.mark.parametrize("method", METHODS)
def test_history_holds_what_the_evaluation_finds(rows, constraint, method):
    result = short(rows, constraint, method)
    assert result.history["epoch"].tolist() == [1, 2, 3, 4]
    last = result.history.iloc[-1]
    objective, g = evaluate(result.model, constraint, rows)
    assert last["objective"] == pytest.approx(objective)
    assert last["max_constraint"] == pytest.approx(g.max().item())
    assert last["mean_constraint"] == pytest.approx(g.mean().item())
    assert result.constraints.shape == result.multipliers.shape == (4, 6)
    assert np.allclose(result.constraints[-1], g)
    assert last["lambda_max"] == pytest.approx(result.multipliers[-1].max())
    if method == "spbm":
        assert result.penalties.shape == (4, 6)
        assert last["penalty_min"] == pytest.approx(result.penalties[-1].min())
    else:
        assert result.penalties is None and math.isnan(last["penalty_min"])


def test_the_objective_is_the_unweighted_mean_over_all_rows(rows, constraint):
    result = short(rows, constraint)
    with torch.no_grad():
        expected = nn.functional.binary_cross_entropy_with_logits(result.model(rows.X).squeeze(1), rows.y)
    assert result.history["objective"].iloc[-1] == pytest.approx(expected.item(), rel=1e-6)


def test_every_constraint_is_kept_by_name(rows, constraint):
    result = short(rows, constraint, evaluate_every=3)
    assert result.history["epoch"].tolist() == [3, 4]
    tidy = result.constraint_history()
    assert len(tidy) == 2 * 6
    logits = result.model(rows.X).squeeze(1)
    rate = [torch.sigmoid(logits)[rows.groups == g].mean().item() for g in range(N_GROUPS)]
    row = tidy.query("epoch == 4 and constraint == 'group 2 - group 0'")
    assert row["value"].item() == pytest.approx(rate[2] - rate[0] - 0.05, abs=1e-6)


def test_constraints_are_enforced(rows, constraint):
    settings = {"epochs": 60, "lr": 0.05}
    free = short(rows, constraint, "adam", **settings).report
    bound = short(rows, constraint, "spbm", **settings).report
    assert free.max_constraint > 0.3
    assert bound.max_constraint < 0.03
    assert bound.objective > free.objective


def test_the_default_objective_is_the_populations(rows, constraint):
    """Batches give each group a third; the small group is fitted better by the balanced objective."""
    settings = {"epochs": 40, "lr": 0.05, "hidden": ()}
    losses = {}
    for objective in ("population", "balanced"):
        model = short(rows, constraint, "adam", objective=objective, **settings).model
        with torch.no_grad():
            each = row_losses(model(rows.X), rows.y)
        losses[objective] = each.mean().item(), np.mean([each[rows.groups == g].mean() for g in range(N_GROUPS)])
    assert losses["population"][0] < losses["balanced"][0]
    assert losses["balanced"][1] < losses["population"][1]


def test_several_classes_and_unequal_blocks(rows):
    labels = (rows.groups + rows.y.long()) % 3
    classes = Rows.of(rows.X, labels, rows.groups)
    constraint = PairwiseGroups(N_GROUPS, "loss", epsilon=0.1)
    result = short(classes, constraint, n_outputs=3, batch_size=13, epochs=20)
    assert result.history["objective"].iloc[-1] < result.history["objective"].iloc[0]
    with torch.no_grad():
        each = nn.functional.cross_entropy(result.model(rows.X), labels, reduction="none")
    means = [each[rows.groups == g].mean() for g in range(N_GROUPS)]
    assert result.report.max_constraint == pytest.approx(float(max(means) - min(means)) - 0.1, abs=1e-5)


def test_norm_bounds_and_constraints_of_ones_own(rows):
    generator = torch.Generator().manual_seed(0)
    for make in (
        lambda model: NormBounds(model.parameters(), bound=0.7),
        lambda model: UserConstraints(lambda logits, y, groups: 0.3 - logits.mean(0), ["mean logit >= 0.3"]),
    ):
        model = mlp(4, (5,), generator=generator)
        family = make(model)
        sampler = GroupSampler(rows.groups, 12, generator=generator)
        optimizer = SPBM(model.parameters(), family, lr=0.02, lambda_init=0.5, gamma=0.5)
        before = evaluate(model, family, rows)[1].max()
        result = train(model, optimizer, family, rows, sampler, epochs=40)
        assert before > 0.05 > 0.03 > result.report.max_constraint
        assert result.names == family.names()


# -------------------------------------------------------------------------------------------------- report


def test_the_report_against_the_graph_of_all_rows(rows):
    constraint = PairwiseGroups(N_GROUPS, "loss", epsilon=0.02, scale=0.5)
    result = short(rows, constraint, epochs=3)
    model, multipliers = result.model, result.optimizer.multipliers
    logits = model(rows.X).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, rows.y)
    g = constraint(logits, rows.y, rows.groups).vector()
    lam = multipliers[~torch.eye(N_GROUPS, dtype=torch.bool)]
    parameters = list(model.parameters())
    by_f = torch.autograd.grad(loss, parameters, retain_graph=True)
    by_lagrangian = torch.autograd.grad(loss + lam @ g, parameters)
    report = result.report
    assert report.gradient == pytest.approx(norm_of(by_f), rel=1e-4)
    assert report.stationarity == pytest.approx(norm_of(by_lagrangian), rel=1e-4)
    assert report.complementarity == pytest.approx((lam * g).abs().max().item(), rel=1e-4)
    assert report.violated == int((g > 0).sum()) and report.constraints == 6
    assert report.worst == constraint.names()[int(g.argmax())]
    assert report.feasible == bool((g <= 0).all())
    assert f"{report.violated} of 6 constraints violated" in str(report) or report.feasible


def test_the_report_sees_constraints_on_the_parameters_themselves(rows):
    model = mlp(4, (), generator=torch.Generator().manual_seed(0))
    family = NormBounds(model.parameters(), bound=0.2)
    optimizer = SPBM(model.parameters(), family, lr=0.1, lambda_init=2.0)
    report = kkt_report(model, optimizer, family, rows)
    weight, bias = model[0].weight, model[0].bias
    loss = nn.functional.binary_cross_entropy_with_logits(model(rows.X).squeeze(1), rows.y)
    total = torch.autograd.grad(loss + 2 * weight.norm() + 2 * bias.norm(), [weight, bias])
    assert report.stationarity == pytest.approx(norm_of(total), rel=1e-4)


def test_a_solved_problem_has_no_residuals():
    """One weight w: f = (w - 2)^2 subject to w <= 1 has its minimum at w = 1 with lambda = 2."""
    rows = Rows.of(np.ones((8, 1)), np.zeros(8, int))
    generator = torch.Generator().manual_seed(0)
    model = mlp(1, (), generator=generator)
    model[0].bias.requires_grad_(False).zero_()
    family = UserConstraints(lambda logits, y, groups: logits.mean(0) - 1.0, ["w <= 1"])
    sampler = GroupSampler(rows.groups, 8, generator=generator)
    optimizer = SPBM(
        model.parameters(), family, base=torch.optim.SGD, lr=0.1, lambda_init=1.0, gamma=0.9, rule="constant"
    )
    held = WarmupCosine(decay=False)
    settings = {"epochs": 300, "schedule": held, "tolerance": 1e-3, "loss": distance_to_two}
    report = train(model, optimizer, family, rows, sampler, **settings).report
    assert model[0].weight.item() == pytest.approx(1.0, abs=1e-4)
    assert report.lambda_max == pytest.approx(2.0, abs=1e-3)
    assert report.gradient == pytest.approx(2.0, abs=1e-3)
    assert report.feasible and max(report.stationarity, report.complementarity) < 1e-3
    assert "feasible (tolerance 0.001)" in str(report)


# -------------------------------------------------------------------------------------------------- stopping


def distance_to_two(logits, labels):
    return (logits.squeeze(1) - 2.0) ** 2


def history(*rows):
    return pd.DataFrame(rows, columns=["objective", "max_constraint"])


@pytest.mark.parametrize(
    ("rows", "stop"),
    [
        ([(1.0, -0.1), (0.9, -0.1), (0.8, -0.1)], False),
        ([(1.0, -0.1), (1.1, -0.1), (1.2, -0.1)], True),
        ([(1.0, 0.3), (1.1, 0.2), (1.2, 0.1)], False),  # less and less infeasible
        ([(1.0, -0.1), (0.5, 0.2), (0.4, 0.3)], True),  # infeasible is no better
        ([(0.1, 0.3), (1.0, 0.0), (1.0, 0.0)], False),
        ([(0.1, 0.3), (0.0, 0.3), (0.0, 0.4)], True),
        ([(1.0, 0.01), (0.9, 0.015), (0.8, 0.012)], False),  # all within the tolerance
    ],
)
def test_early_stop(rows, stop):
    assert EarlyStop(patience=2, tolerance=0.02)(history(*rows)) is stop


def test_early_stop_ends_a_run(rows, constraint):
    result = short(rows, constraint, epochs=30, stop=lambda history: len(history) == 3)
    assert result.stopped and len(result.history) == 3
    assert not short(rows, constraint).stopped


@pytest.mark.parametrize(("argument", "value"), [("patience", 0), ("min_delta", -1.0), ("tolerance", math.inf)])
def test_bad_stops_are_named(argument, value):
    with pytest.raises(ArgumentError, match=argument):
        EarlyStop(**{argument: value})


# ------------------------------------------------------------------------------------- checkpoint and resume


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_run_ends_in_the_same_bytes(rows, constraint, method, flat):
    settings = {"epochs": 5, "flat": flat, "epoch": "smallest"}
    whole = Memory()
    expected = short(rows, constraint, method, checkpoint=whole, **settings)
    memory = Memory()
    with pytest.raises(Interrupted):
        short(rows, constraint, method, checkpoint=memory, progress=interrupt(2), **settings)
    assert len(memory.kept) == 2
    result = short(rows, constraint, method, checkpoint=memory, **settings)
    assert len(memory.kept) == 5
    assert content(result.model) == content(expected.model)
    assert memory.kept[-1] == whole.kept[-1]
    assert result.history.equals(expected.history)
    assert np.array_equal(result.multipliers, expected.multipliers)
    assert result.report == expected.report


def test_a_checkpoint_does_not_change_the_run(rows, constraint):
    assert content(short(rows, constraint, checkpoint=Memory()).model) == content(short(rows, constraint).model)


def test_random_layers_resume_exactly_and_leave_the_callers_generator(rows, constraint):
    def run(**options):
        generator = torch.Generator().manual_seed(0)
        model = nn.Sequential(*mlp(4, (8,), generator=generator), nn.Dropout(0.5))
        optimizer = PenalizedAdam(model.parameters(), constraint, lr=0.02, beta=0.0)
        sampler = GroupSampler(rows.groups, 12, generator=generator)
        return content(train(model, optimizer, constraint, rows, sampler, epochs=4, **options).model)

    before = torch.random.get_rng_state()
    expected, memory = run(), Memory()
    with pytest.raises(Interrupted):
        run(checkpoint=memory, progress=interrupt(2))
    torch.manual_seed(12345)
    assert run(checkpoint=memory) == expected
    torch.random.set_rng_state(before)
    run()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_finished_run_is_not_run_again(rows, constraint):
    memory = Memory()
    expected = short(rows, constraint, checkpoint=memory)
    again = short(rows, constraint, checkpoint=memory)
    assert len(memory.kept) == 4
    assert content(again.model) == content(expected.model) and again.report == expected.report


def test_a_stopped_run_stays_stopped(rows, constraint):
    memory = Memory()
    settings = {"epochs": 9, "checkpoint": memory, "stop": lambda history: len(history) >= 2}
    expected = short(rows, constraint, **settings)
    again = short(rows, constraint, **settings)
    assert again.stopped and len(memory.kept) == 2 and content(again.model) == content(expected.model)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epochs": 5}, "training"),
        ({"seed": 1}, "sampler"),
        ({"lr": 0.03}, "optimizer"),
        ({"hidden": (7,)}, "model"),
        ({"batch_size": 15}, "sampler"),
        ({"objective": "balanced"}, "training"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(rows, constraint, change, named):
    memory = Memory()
    short(rows, constraint, checkpoint=memory)
    with pytest.raises(ArgumentError, match=f"checkpoint: is of another run: other .*{named}"):
        short(rows, constraint, checkpoint=memory, **change)


def test_a_checkpoint_of_other_rows_constraints_or_method_is_refused(rows, constraint):
    memory = Memory()
    short(rows, constraint, checkpoint=memory)
    other = Rows(rows.X + 1.0, rows.y, rows.groups)
    with pytest.raises(ArgumentError, match="checkpoint: is of another run: other rows"):
        short(other, constraint, checkpoint=memory)
    with pytest.raises(ArgumentError, match="checkpoint: is of another run: other constraint"):
        short(rows, PairwiseGroups(N_GROUPS, epsilon=0.06), checkpoint=memory)
    with pytest.raises(ArgumentError, match="checkpoint: is of another run: other optimizer"):
        short(rows, constraint, "ssl_alm", checkpoint=memory)


def test_a_damaged_checkpoint_is_reported(rows, constraint):
    memory = Memory()
    short(rows, constraint, checkpoint=memory)
    with pytest.raises(DataError, match="checkpoint: cannot be read"):
        short(rows, constraint, checkpoint=Memory(memory.kept[-1][:200]))


def test_checkpoints_in_a_file(rows, constraint, tmp_path):
    file = CheckpointFile(tmp_path / "new" / "run.pt")
    assert file.read() is None
    result = short(rows, constraint, checkpoint=file)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.pt"]
    assert content(short(rows, constraint, checkpoint=file).model) == content(result.model)
    with pytest.raises(OutputError, match="checkpoint: cannot write"):
        CheckpointFile(tmp_path).write(b"")
    with pytest.raises(DataError, match="checkpoint: cannot read"):
        CheckpointFile(tmp_path).read()


# ---------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs: is 0"),
        ({"evaluate_every": 0}, "evaluate_every: is 0"),
        ({"checkpoint_every": 0}, "checkpoint_every: is 0"),
        ({"batch_size": 2}, "batch_size: 2 rows cannot hold"),
        ({"objective": "paper"}, "objective: unknown"),
        ({"lr": -1.0}, "lr: is -1.0"),
        ({"hidden": 8}, "hidden: is 8"),
        ({"seed": 0.5}, "seed: is 0.5"),
        ({"seed": -1}, "seed: is -1"),
    ],
)
def test_bad_settings_are_named(rows, constraint, change, message):
    with pytest.raises(ArgumentError, match=message):
        short(rows, constraint, **change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.full((4, 2), np.nan), np.zeros(4)), "X: holds a number that is not finite"),
        ((np.zeros(4), np.zeros(4)), "X: has shape"),
        ((np.zeros((4, 2)), np.zeros(3)), "y: has shape"),
        ((np.zeros((4, 2)), np.zeros(4), np.zeros(3, int)), "groups: has shape"),
        ((np.zeros((4, 2)), np.zeros(4), np.zeros(4)), "groups: has type"),
        ((np.zeros((4, 2)), np.full(4, 0.5)), "y: holds a label that is no class"),
        ((np.zeros((4, 2)), np.full(4, -1)), "y: holds a label that is no class"),
    ],
)
def test_bad_rows_are_named(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Rows.of(*arguments)


def test_mismatches_are_named(rows, constraint):
    generator = torch.Generator().manual_seed(0)
    model = mlp(4, (), generator=generator)
    sampler = GroupSampler(rows.groups, 12, generator=generator)
    with pytest.raises(ArgumentError, match="optimizer: is for 2 constraints"):
        train(model, SPBM(model.parameters(), 2), constraint, rows, sampler, epochs=1)
    few = GroupSampler([0, 1, 2], 3, generator=generator)
    with pytest.raises(ArgumentError, match="sampler: draws from 3 rows"):
        train(model, SPBM(model.parameters(), constraint), constraint, rows, few, epochs=1)
    for family in (3, None):
        with pytest.raises(ArgumentError, match=f"constraint: is {family}"):
            train(model, SPBM(model.parameters(), 2), family, rows, sampler, epochs=1)
        with pytest.raises(ArgumentError, match=f"constraint: is {family}"):
            train_mlp(rows, family, parameters=SPBMParameters(), lr=0.1, hidden=(), batch_size=12, epochs=1)
    with pytest.raises(ArgumentError, match="parameters: are dict"):
        train_mlp(rows, constraint, parameters={}, lr=0.1, hidden=(), batch_size=12, epochs=1)


def test_a_diverging_run_says_so(rows, constraint):
    with pytest.raises(ArgumentError, match=r"loss: is (nan|inf) at step"):
        short(rows, constraint, lr=1e30)
