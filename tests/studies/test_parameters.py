from __future__ import annotations

import importlib
import math
from dataclasses import FrozenInstanceError, dataclass, field
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairfront import studies
from fairfront.errors import ArgumentError
from fairfront.studies import parameters
from fairfront.studies.parameters import StudyParameters, cost, describe, meta, parse, parse_like, to_json


def _tasks() -> tuple[str, ...]:
    return ("income", "employment", "travel-time")


@dataclass(frozen=True)
class Example(StudyParameters):
    task: str = field(default="income", metadata=meta(help="which label", choices=_tasks))
    penalties: tuple[float, ...] = field(default=(0.1,), metadata=meta(help="penalties", low=0.0, high=10.0))
    steps: int = field(default=3, metadata=meta(help="steps", low=1))
    strict: bool = False
    label: str | None = None
    pair: tuple[int, str] = (1, "a")
    mode: Literal["mean", "max"] = "mean"
    size: int | Literal["all"] = "all"


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("task", "employment", "employment"),
        ("penalties", "0.1,2", (0.1, 2.0)),
        ("penalties", "1e-3", (1e-3,)),
        ("penalties", " 1 , 2 ,", (1.0, 2.0)),
        ("steps", "7", 7),
        ("steps", "1e3", 1000),
        ("strict", "true", True),
        ("strict", "False", False),
        ("label", "none", None),
        ("label", "true", "true"),
        ("label", "7", "7"),
        ("pair", "2,b", (2, "b")),
        ("mode", "max", "max"),
        ("size", "12", 12),
        ("size", "all", "all"),
    ],
)
def test_words_are_read_by_the_type_of_the_parameter(name: str, word: str, value: object) -> None:
    found = getattr(parse(Example, {name: word}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("penalties", "a"),
        ("penalties", ""),
        ("penalties", "1,,2"),
        ("penalties", "nan"),
        ("penalties", "inf"),
        ("steps", "2.5"),
        ("steps", "none"),
        ("steps", "true"),
        ("strict", "1"),
        ("strict", "yes"),
        ("label", ""),
        ("pair", "2"),
        ("pair", "b,2"),
        ("mode", "min"),
        ("size", "some"),
    ],
)
def test_a_word_of_a_wrong_type_is_refused_by_name(name: str, word: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}: wrong type: .*expected"):
        parse(Example, {name: word})


@pytest.mark.parametrize(
    ("name", "value"), [("steps", True), ("steps", 2.5), ("strict", 1), ("penalties", "x"), ("task", 3)]
)
def test_objects_of_a_wrong_type_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}: "):
        Example(**{name: value})


def test_python_values_become_what_the_type_says() -> None:
    made = Example(penalties=[1, np.float64(2.0)], steps=np.int64(4))  # type: ignore[arg-type]
    assert made.penalties == (1.0, 2.0)
    assert made.steps == 4
    assert type(made.steps) is int
    assert all(type(value) is float for value in made.penalties)
    assert Example(penalties=0.5).penalties == (0.5,)  # type: ignore[arg-type]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"parameter: unknown: 'tsak' .*did you mean task"):
        parse(Example, {"tsak": "income"})


def test_an_unknown_choice_is_refused_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"task: unknown: 'incme' .*did you mean income"):
        parse(Example, {"task": "incme"})


@pytest.mark.parametrize(
    ("name", "value"), [("steps", "0"), ("penalties", "0.1,11"), ("penalties", "-1"), ("seed", "-1")]
)
def test_a_value_out_of_range_is_refused(name: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}: out of range: .*allowed: "):
        parse(Example, {name: value})


def test_bounds_are_allowed() -> None:
    assert parse(Example, {"penalties": "0,10", "steps": "1"}).penalties == (0.0, 10.0)


def test_a_profile_is_one_of_three() -> None:
    with pytest.raises(ArgumentError, match=r"profile: unknown: 'quik' .*did you mean quick"):
        StudyParameters(profile="quik")


def test_parameters_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Example().steps = 4  # type: ignore[misc]


@given(st.lists(st.floats(0.0, 10.0), min_size=1), st.integers(1, 10**9))
def test_what_is_printed_is_read_back(penalties: list[float], steps: int) -> None:
    made = parse(Example, {"penalties": ",".join(map(repr, penalties)), "steps": str(steps)})
    assert made == Example(penalties=tuple(penalties), steps=steps)
    assert parse(Example, to_json(made)) == made


@pytest.mark.parametrize(
    ("word", "default", "value"),
    [
        ("2", 1, 2),
        ("2", 1.5, 2.0),
        ("x", "word", "x"),
        ("1", (1, 2.5), (1.0,)),
        ("none", None, None),
        ("1,b", None, (1, "b")),
        ("true", False, True),
        ("x,2", (), ("x", 2)),
    ],
)
def test_without_a_field_the_default_gives_the_type(word: str, default: object, value: object) -> None:
    found = parse_like("p", word, default)
    assert found == value
    assert type(found) is type(value)


def test_without_a_field_a_wrong_type_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^p: wrong type: 'x' .*whole number"):
        parse_like("p", "x", 3)


def test_a_profile_fills_in_what_is_left_open(toy: ModuleType) -> None:
    assert [toy.Parameters(profile=profile).resolved().points for profile in parameters.PROFILES] == [2, 5, 50]
    chosen = toy.Parameters(profile="smoke", points=7)
    assert chosen.resolved() == chosen
    assert toy.Parameters().resolved().resolved() == toy.Parameters().resolved()


def test_a_grid_that_names_no_open_field_is_refused(toy: ModuleType, folders: Any) -> None:
    (folders / "studies" / "grids" / "toy.toml").write_text("[quick]\npoitns = 3\n")
    with pytest.raises(ArgumentError, match=r"grid of .*toy.*unknown: 'poitns' .*did you mean points"):
        toy.Parameters().resolved()


def test_describe_says_what_is_allowed(toy: ModuleType) -> None:
    found = {info.name: info for info in describe(toy.Parameters)}
    assert list(found) == ["profile", "seed", "shift", "task", "points"]
    assert found["profile"].allowed == "smoke | quick | full"
    assert found["shift"].allowed == "-10 .. 10"
    assert (found["task"].allowed, found["task"].type) == ("a | b | c", "comma list of: word")
    assert found["points"].by_profile == {"smoke": 2, "quick": 5, "full": 50}
    assert all(info.help for info in found.values())


def test_cost_is_the_grids(toy: ModuleType) -> None:
    assert cost(toy.Parameters, "smoke") == "about a blink"
    assert cost(toy.Parameters, "full") == ""
    with pytest.raises(ArgumentError, match=r"profile"):
        cost(toy.Parameters, "huge")


def test_studies_are_found_by_name(toy: ModuleType) -> None:
    assert "toy" in studies.names()
    assert "parameters" not in studies.names()
    assert studies.title("toy") == "A toy study"
    assert studies.source("toy").name == "toy.py"
    for call in (studies.get, studies.title, studies.source):
        with pytest.raises(ArgumentError, match=r"study: unknown: 'tyo' .*did you mean toy"):
            call("tyo")


@pytest.mark.parametrize("name", studies.names())
def test_every_study_is_whole(name: str) -> None:
    module = importlib.import_module(f"fairfront.studies.{name}")
    assert module.TITLE == studies.title(name) != ""
    for profile in parameters.PROFILES:
        resolved = module.Parameters(profile=profile).resolved()
        assert cost(module.Parameters, profile)
        assert not [info.name for info in describe(module.Parameters) if info.by_profile and info.default is not None]
        assert isinstance(module.datasets(resolved), tuple)
    for info in describe(module.Parameters):
        assert info.help, f"{name}: {info.name} is not explained"
        assert not (isinstance(info.default, float) and math.isnan(info.default))
