"""Bad input to the optimisers: every error names the argument, and nothing has changed."""

import math

import pytest
import torch
from torch import nn

from fairfront.constrained import (
    SPBM,
    SSLALM,
    Algorithm2,
    PairwiseGroups,
    PenalizedAdam,
    SPBMParameters,
    SSLALMParameters,
    SSw,
)
from fairfront.errors import ArgumentError


def refused(argument, words, function, *args, **options):
    with pytest.raises(ArgumentError, match=words) as caught:
        function(*args, **options)
    assert caught.value.argument == argument


def point(*values):
    return torch.tensor(values or (1.0,), requires_grad=True)


@pytest.mark.parametrize(
    ("argument", "words", "settings"),
    [
        ("lambda_min", "a multiplier at 0 stays there", {"lambda_min": 0.0}),
        ("lambda_min", "above 0", {"lambda_min": -1.0}),
        ("lambda_min", "nan", {"lambda_min": math.nan}),
        ("lambda_max", "range from lambda_min = 0.5 is empty", {"lambda_min": 0.5, "lambda_max": 0.5}),
        ("lambda_init", "is 200", {"lambda_init": 200.0}),
        ("penalty_min", "g is divided by p", {"penalty_min": 0.0}),
        ("penalty_max", "empty", {"penalty_min": 0.5, "penalty_max": 0.1}),
        ("penalty_init", "is 3", {"penalty_init": 3.0}),
        ("gamma", r"is 1 \(a number in \[0, 1\)\)", {"gamma": 1.0}),
        ("gamma", "is -0.1", {"gamma": -0.1}),
        ("gamma", "is nan", {"gamma": math.nan}),
        ("gamma", "is 'x'", {"gamma": "x"}),
        ("kappa", "is 1", {"kappa": 1.0}),
        ("kappa", "is -1", {"kappa": -1}),
        ("rho", "is 0", {"rho": 0.0}),
        ("mu", "is -1", {"mu": -1.0}),
        ("delta", "is 2", {"delta": 2.0}),
        ("phi", "did you mean ql", {"phi": "qll"}),
        ("rule", "did you mean adapt", {"rule": "adpt"}),
        ("mode", "did you mean package", {"mode": "packages"}),
        ("gama", "did you mean gamma", {"gama": 0.9}),
        ("lr", "is -1", {"lr": -1.0}),
        ("lr", "is nan", {"lr": math.nan}),
        ("base", "cannot be made", {"base_options": {"nonsense": 1}}),
        ("base", "makes a int", {"base": lambda params, **options: 3}),
        ("base", "evaluates the loss itself", {"base": torch.optim.LBFGS}),
        ("parameters", "are SSLALMParameters", {"parameters": SSLALMParameters()}),
        ("schedule", "is int", {"schedule": 3}),
    ],
)
def test_spbm_settings(argument, words, settings):
    refused(argument, words, SPBM, [point()], 1, **settings)


@pytest.mark.parametrize(
    ("cls", "argument", "settings"),
    [
        (SSLALM, "eta", {"eta": 0.0}),
        (SSLALM, "rho", {"rho": -1.0}),
        (SSLALM, "penalty", {"penalty": "quadratics"}),
        (SSLALM, "lambda_max", {"lambda_max": 0.0}),
        (SSw, "constraint_lr", {"constraint_lr": 0.0}),
        (SSw, "tolerance", {"tolerance": -1.0}),
        (SSw, "horizon", {"horizon": 1.5}),
        (PenalizedAdam, "beta", {"beta": -1.0}),
        (PenalizedAdam, "penalty", {"penalty": "hinges"}),
    ],
)
def test_settings_of_the_others(cls, argument, settings):
    refused(argument, "is|unknown", cls, [point()], 1, **settings)


def test_schedules():
    for settings in (
        {"gamma0": 1.0},
        {"kappa0": -1.0},
        {"hold": -1},
        {"exponent": 0.0},
        {"alpha0": 0.0},
        {"decay": 0.5},
    ):
        refused(next(iter(settings)), "is", Algorithm2, **settings)


def test_parameters_and_number():
    refused("m", "is 0", SPBM, [point()], 0)
    refused("m", "is True", SPBM, [point()], True)
    refused("m", "a number of constraints, or a family", SPBM, [point()], 2.5)
    refused("params", "are empty", SPBM, [], 1)
    refused("params", "is one tensor", SPBM, point(), 1)
    refused("params", "none requires a gradient", SPBM, [torch.ones(2)], 1)
    refused("params", "hold a int", SPBM, [3], 1)
    refused("params", "floating-point", SPBM, [torch.ones(2, dtype=torch.int64)], 1)
    refused("params", "without the key 'params'", SPBM, [{"lr": 1.0}], 1)
    refused("flat", "not known to work elementwise", SPBM, [point()], 1, base=Odd, flat=True)


class Odd(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        return None


BAD_STEPS = [
    ("constraints", r"have shape \(3,\)", lambda x: (x.sum(), torch.zeros(3))),
    ("constraints", r"have shape \(2, 1\)", lambda x: (x.sum(), torch.zeros(2, 1))),
    ("constraints", r"have shape \(\)", lambda x: (x.sum(), torch.tensor(1.0))),
    ("constraints", "are NoneType", lambda x: (x.sum(), None)),
    ("constraints", "are list", lambda x: (x.sum(), [1.0, 2.0])),
    ("constraints", "are 6 gaps", lambda x: (x.sum(), PairwiseGroups(3).from_statistics(torch.zeros(3)))),
    ("loss", r"is no scalar: \(2,\)", lambda x: (x, torch.zeros(2))),
    ("loss", "is no scalar: float", lambda x: (1.0, torch.zeros(2))),
    ("loss", "has no graph", lambda x: (x.sum().detach(), torch.zeros(2))),
    ("loss", "is nan at step 1", lambda x: (x.sum() * math.nan, torch.zeros(2))),
    ("loss", "is inf at step 1", lambda x: (x.sum() * math.inf, torch.zeros(2))),
    ("loss", "the pair", lambda x: (lambda: x.sum(), None)),
    ("constraints", "beside a closure", lambda x: (lambda: (x.sum(), torch.zeros(2)), torch.zeros(2))),
]


@pytest.mark.parametrize("cls", [SPBM, SSLALM, SSw, PenalizedAdam])
@pytest.mark.parametrize(("argument", "words", "make"), BAD_STEPS)
def test_a_refused_step_changes_nothing(cls, argument, words, make):
    x = point(1.0, 2.0)
    optimizer = cls([x], 2, lr=0.1)
    optimizer.step(x.square().sum(), x - 1.5)
    before = x.detach().clone(), optimizer.multipliers, optimizer.state.step
    refused(argument, words, optimizer.step, *make(x))
    assert torch.equal(before[0], x) and torch.equal(before[1], optimizer.multipliers)
    assert optimizer.state.step == before[2]


def test_the_form_of_the_constraints_stays():
    x = point(1.0, 2.0)
    optimizer = SPBM([x], 2)
    optimizer.step(x.sum(), x - 1)
    refused("constraints", "the same form", optimizer.step, x.sum(), PairwiseGroups(2).from_statistics(x))
    optimizer = SPBM([x], PairwiseGroups(2))
    refused("constraints", "the same form", optimizer.step, x.sum(), x - 1)


def test_a_checkpoint_of_another_problem():
    def made(cls=SPBM, m=2, sizes=(3,), **options):
        return cls([torch.zeros(size, requires_grad=True) for size in sizes], m, mu=1.0, **options)

    mine = made()
    kept = mine.state_dict()
    for words, other in (
        ("kind is 'SSLALM'", made(SSLALM)),
        ("m is 3", made(m=3)),
        ("flat is True", made(flat=True)),
        ("other shapes", made(sizes=(4,))),
        ("other shapes", made(sizes=(3, 3))),
    ):
        refused("state_dict", words, mine.load_state_dict, other.state_dict())
        assert torch.equal(kept["multipliers"], mine.multipliers)
    pairs = made(m=PairwiseGroups(2))
    refused("state_dict", "has multipliers of shape", pairs.load_state_dict, kept)
    refused("state_dict", "has no 'kind'", mine.load_state_dict, {})
    refused("state_dict", "has no 'base'", mine.load_state_dict, {k: v for k, v in kept.items() if k != "base"})


def test_parameters_as_one_object_or_by_name():
    parameters = SPBMParameters(gamma=0.5, mu=1.0)
    assert SPBM([point()], 1, parameters=parameters).parameters is parameters
    assert SPBM([point()], 1, parameters=parameters, gamma=0.6).parameters == SPBMParameters(gamma=0.6, mu=1.0)
    net = nn.Linear(2, 1)
    assert SPBM(net.named_parameters(), 1).param_groups[0]["params"][0] is net.weight
