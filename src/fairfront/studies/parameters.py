"""Parameters of a study: a frozen dataclass, read from words, checked, described, and filled in by profile.

A study writes::

    @dataclass(frozen=True)
    class Parameters(StudyParameters):
        task: str = field(default="income", metadata=meta(help="which label", choices=("income", "employment")))
        penalties: tuple[float, ...] = field(default=(0.1,), metadata=meta(help="penalties of the path", low=0.0))
        points: int | None = field(default=None, metadata=meta(help="points of the front", low=2))

and leaves the sizes that depend on the profile (``points`` above) to ``grids/STUDY.toml`` beside the module.
Values are checked whenever an instance is made, whether from the command line, a notebook or Python.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
import numbers
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, Union

from fairfront.errors import ArgumentError, unknown_name

__all__ = [
    "PROFILES",
    "ModelParameters",
    "ParameterInfo",
    "RiskParameters",
    "StudyParameters",
    "cost",
    "describe",
    "describe_like",
    "meta",
    "parse",
    "parse_like",
    "profile_values",
    "spelled",
    "split",
    "to_json",
]

PROFILES: tuple[str, ...] = ("smoke", "quick", "full")
"""The sizes at which everything can be computed: seconds, minutes, the papers' own."""

P = TypeVar("P", bound="StudyParameters")


def meta(
    *,
    help: str,
    choices: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
    low: float | None = None,
    high: float | None = None,
    distinct: bool = False,
) -> dict[str, Any]:
    """Return the metadata of a parameter's field.

    Parameters
    ----------
    help : str
        What the parameter means, in a few words, with its unit.
    choices : iterable or callable, optional
        The values allowed (of each element, for a tuple); a callable is asked when a value is checked.
    low, high : float, optional
        The smallest and largest value allowed, both included (of each element, for a tuple).
    distinct : bool, default False
        Whether a tuple must hold something, and nothing twice.
    """
    given = {"help": help, "choices": choices, "low": low, "high": high, "distinct": distinct or None}
    return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class StudyParameters:
    """What every study can be told: at which profile, with which seed.

    Subclasses are frozen dataclasses whose fields all have defaults. A field of type ``T | None`` left at None takes
    the value that its profile has in ``grids/STUDY.toml``, if there is one (`resolved`).

    Parameters
    ----------
    profile : str, default "quick"
        "smoke", "quick" or "full".
    seed : int, default 0
        Seed of every random choice, >= 0.

    Raises
    ------
    ArgumentError
        If a value has the wrong type, is not among the choices or is out of range.
    """

    profile: str = field(
        default="quick", metadata=meta(help="size of the computation: seconds, minutes, the papers'", choices=PROFILES)
    )
    seed: int = field(default=0, metadata=meta(help="seed of every random choice", low=0))

    def __post_init__(self) -> None:
        for name, parameter in _fields(type(self)).items():
            object.__setattr__(self, name, parameter.check(getattr(self, name)))

    def resolved(self) -> Self:
        """Return the same parameters with every field that is None filled in from the profile's grid."""
        values = profile_values(type(self), self.profile)
        missing = {name: value for name, value in values.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)


@dataclass(frozen=True, kw_only=True)
class RiskParameters(StudyParameters):
    """What a study of regularised linear models can be told besides.

    Parameters
    ----------
    l2 : float, default 1e-2
        Weight of the squared norm of the coefficients, halved, in each group's risk.
    penalize_intercept : bool, default False
        Whether the ones column is penalised like the rest.
    """

    l2: float = field(default=1e-2, metadata=meta(help="weight of |w|^2/2 in each group's risk", low=1e-6, high=1e3))
    penalize_intercept: bool = field(
        default=False, metadata=meta(help="whether the ones column is penalised like the rest")
    )


@dataclass(frozen=True, kw_only=True)
class ModelParameters(RiskParameters):
    """What a study of classifiers and their unfairness can be told besides.

    Parameters
    ----------
    variant : {"paper", "cited"}, default "paper"
        The metrics as published, or the definitions that they cite.
    loss : {"logistic", "squared_hinge"}, default "logistic"
        Loss of the models.
    """

    variant: Literal["paper", "cited"] = field(
        default="paper", metadata=meta(help="the metrics as published, or the definitions that they cite")
    )
    loss: str = field(
        default="logistic", metadata=meta(help="loss of the models", choices=("logistic", "squared_hinge"))
    )


@dataclass(frozen=True)
class ParameterInfo:
    """A parameter as `fairfront describe` shows it.

    Attributes
    ----------
    name, type, allowed, help : str
        Its name, its type in words, the choices or the range ("" where anything of the type is allowed), its meaning.
    default : object
        The default; None where the profile decides.
    by_profile : dict
        The profile's value for each profile that sets one.
    """

    name: str
    type: str
    default: Any
    allowed: str
    help: str
    by_profile: dict[str, Any]


def parse(cls: type[P], assignments: Mapping[str, object]) -> P:
    """Return parameters made of a study's defaults and the given assignments.

    Parameters
    ----------
    cls : type
        The study's ``Parameters``.
    assignments : mapping of str to str or object
        Values by name. A string is read according to the parameter's type: ``true``, ``false``, ``none``, numbers,
        words; a tuple takes a comma list, and one value is a list of one. Other objects are taken as they are.

    Raises
    ------
    ArgumentError
        For a name that no parameter has (the nearest are named), a value of the wrong type or out of range.

    Examples
    --------
    >>> parse(StudyParameters, {"seed": "3", "profile": "smoke"})
    StudyParameters(profile='smoke', seed=3)
    """
    parameters = _fields(cls)
    for name in assignments:
        if name not in parameters:
            raise unknown_name("parameter", name, parameters)
    values: dict[str, Any] = {
        name: parameters[name].read(value) if isinstance(value, str) else value for name, value in assignments.items()
    }
    return cls(**values)


def parse_like(name: str, value: object, default: object) -> Any:
    """Read a value for a parameter of which only a default is known: it takes the default's type.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : str or object
        What was given; a string is read as in `parse`.
    default : object
        A value of the type wanted. With None anything is read: none, true, false, a number, a word or a comma list.

    Raises
    ------
    ArgumentError
        If the value does not have the default's type.
    """
    parameter = _Parameter(name, _type_of(default))
    return parameter.check(parameter.read(value) if isinstance(value, str) else value)


def describe(cls: type[StudyParameters]) -> list[ParameterInfo]:
    """Return what can be said about each parameter of a study, in the order of its fields."""
    profiles = {profile: profile_values(cls, profile) for profile in PROFILES}
    return [
        ParameterInfo(
            name=name,
            type=_words(parameter.hint),
            default=parameter.default,
            allowed=parameter.allowed(),
            help=parameter.help,
            by_profile={profile: values[name] for profile, values in profiles.items() if name in values},
        )
        for name, parameter in _fields(cls).items()
    ]


def describe_like(name: str, default: object, help: str = "") -> ParameterInfo:
    """Return what can be said about a parameter of which only a default is known (see `parse_like`)."""
    return ParameterInfo(name, _words(_type_of(default)), default, "", help, {})


def to_json(parameters: StudyParameters) -> dict[str, Any]:
    """Return the parameters as plain JSON values, field by field; tuples become lists."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(parameters), allow_nan=True))
    return plain


def split(parameters: P, *names: str) -> tuple[P, ...]:
    """Return the parameters with each value of some fields alone, every combination of them: parts of a study.

    Parameters
    ----------
    parameters : StudyParameters
        The whole.
    *names : str
        Fields that hold tuples; the first one changes slowest.

    Examples
    --------
    >>> split(Parameters(task=("a", "b")), "task")  # doctest: +SKIP
    (Parameters(task=('a',)), Parameters(task=('b',)))
    """
    choices = itertools.product(*(getattr(parameters, name) for name in names))
    changes: list[dict[str, Any]] = [
        {name: (value,) for name, value in zip(names, values, strict=True)} for values in choices
    ]
    return tuple(dataclasses.replace(parameters, **change) for change in changes)


def spelled(value: object) -> str:
    """Return a value as `parse` reads it: the words that the command line would be given."""
    if isinstance(value, list | tuple):
        return ",".join(map(spelled, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def profile_values(cls: type[StudyParameters], profile: str) -> dict[str, Any]:
    """Return the values that a profile gives to the fields of a study that are left at None.

    Parameters
    ----------
    cls : type
        The study's ``Parameters``; the grid is ``grids/MODULE.toml`` beside the module that defines it.
    profile : str
        One of `PROFILES`.

    Raises
    ------
    ArgumentError
        If the profile is unknown, or the grid names something that is not a field left at None.
    """
    if profile not in PROFILES:
        raise unknown_name("profile", profile, PROFILES)
    open_fields = {name: parameter for name, parameter in _fields(cls).items() if parameter.default is None}
    values = {name: value for name, value in _grid(cls).get(profile, {}).items() if name != "cost"}
    for name in values:
        if name not in open_fields:
            raise unknown_name(f"grid of {cls.__module__}, [{profile}]", name, open_fields)
    return {name: open_fields[name].check(value) for name, value in values.items()}


def cost(cls: type[StudyParameters], profile: str) -> str:
    """Return what a profile of a study costs, as its grid says it ("about 3 s"), or "" where it does not."""
    if profile not in PROFILES:
        raise unknown_name("profile", profile, PROFILES)
    return str(_grid(cls).get(profile, {}).get("cost", ""))


@dataclass(frozen=True)
class _Parameter:
    """One parameter: its name, its type and what is allowed; reads words and checks values."""

    name: str
    hint: Any
    default: Any = None
    help: str = ""
    choices: Any = None
    low: float | None = None
    high: float | None = None
    distinct: bool = False

    def read(self, text: str) -> Any:
        """Return the value that a word of the command line stands for."""
        try:
            return _read(self.hint, text.strip())
        except ValueError:
            raise self._wrong_type(text) from None

    def check(self, value: Any) -> Any:
        """Return the value as its type holds it (a list as a tuple, a whole number as a float), or raise."""
        try:
            value = _coerce(self.hint, value)
        except ValueError:
            raise self._wrong_type(value) from None
        for element in value if isinstance(value, tuple) else (value,):
            if element is not None:
                self._check_element(element)
        if self.distinct and value is not None and (not value or len(set(value)) != len(value)):
            raise ArgumentError(self.name, f"must name each once, got {', '.join(map(str, value)) or 'none'}")
        return value

    def allowed(self) -> str:
        """Return the choices or the range in words."""
        if self.choices is not None:
            return " | ".join(str(choice) for choice in self._choices())
        if self.low is not None and self.high is not None:
            return f"{self.low:g} .. {self.high:g}"
        if self.low is not None:
            return f">= {self.low:g}"
        return "" if self.high is None else f"<= {self.high:g}"

    def _choices(self) -> tuple[Any, ...]:
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def _check_element(self, element: Any) -> None:
        if self.choices is not None and element not in self._choices():
            raise unknown_name(self.name, element, map(str, self._choices()))
        too_low = self.low is not None and not element >= self.low
        too_high = self.high is not None and not element <= self.high
        if too_low or too_high:
            raise ArgumentError(self.name, f"out of range: {element}", f"allowed: {self.allowed()}")

    def _wrong_type(self, value: object) -> ArgumentError:
        return ArgumentError(self.name, f"wrong type: {value!r}", f"expected {_words(self.hint)}")


def _fields(cls: type[StudyParameters]) -> dict[str, _Parameter]:
    hints = typing.get_type_hints(cls)
    return {
        item.name: _Parameter(item.name, hints[item.name], default=item.default, **item.metadata)
        for item in dataclasses.fields(cls)
    }


def _grid(cls: type[StudyParameters]) -> dict[str, dict[str, Any]]:
    source = Path(inspect.getfile(cls))
    path = source.parent / "grids" / f"{source.stem}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# -- types -----------------------------------------------------------------------------------------------------------
# Only what a parameter may be: bool, int, float, str, None, Literal, homogeneous and fixed tuples, and unions of these.


_ANYTHING: Any = None | bool | int | float | str
_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "word",
    types.NoneType: "none",
    Any: "anything",
}


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, the strictest reader first, so that "1" is a number before it is a word."""
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return (hint,)
    order = [types.NoneType, bool, int, float]
    rank = {member: place for place, member in enumerate(order)}
    return tuple(sorted(typing.get_args(hint), key=lambda member: rank.get(member, 8 if member is not str else 9)))


def _first(hint: Any, attempt: Callable[[Any], Any]) -> Any:
    """Return what the first member of a union makes of a value; ValueError where none takes it."""
    for member in _members(hint):
        try:
            return attempt(member)
        except ValueError:
            continue
    raise ValueError


def _read(hint: Any, text: str) -> Any:
    return _first(hint, lambda member: _read_member(member, text))


def _read_member(hint: Any, text: str) -> Any:
    if hint is Any:
        return _read_anything(text)
    if hint is types.NoneType:
        return _word(text, {"none": None})
    if hint is bool:
        return _word(text, {"true": True, "false": False})
    if hint is int:
        return _read_int(text)
    if hint is float:
        return float(text)
    if hint is str:
        if not text:
            raise ValueError
        return text
    if typing.get_origin(hint) is Literal:
        return _word(text, {str(value): value for value in typing.get_args(hint)})
    elements = [part.strip() for part in text.removesuffix(",").split(",")]
    if not all(elements):
        raise ValueError
    return tuple(_read(element_hint, part) for element_hint, part in zip(_element_hints(hint, len(elements)), elements))


def _read_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(_coerce_member(int, float(text)))  # 1e3 is a whole number too


def _read_anything(text: str) -> Any:
    return _read(_ANYTHING if "," not in text else tuple[_ANYTHING, ...], text)


def _word(text: str, values: Mapping[str, Any]) -> Any:
    for word, value in values.items():
        if text.lower() == word.lower():
            return value
    raise ValueError


def _coerce(hint: Any, value: Any) -> Any:
    return _first(hint, lambda member: _coerce_member(member, value))


def _coerce_member(hint: Any, value: Any) -> Any:
    if hint is Any:
        return tuple(value) if isinstance(value, list) else value
    if hint is types.NoneType and value is None:
        return None
    if hint is bool and isinstance(value, bool):
        return value
    if hint in (int, float) and isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and (hint is float or number.is_integer()):
            return hint(value)
    if hint is str and isinstance(value, str):
        return str(value)
    if typing.get_origin(hint) is Literal and value in typing.get_args(hint):
        return value
    if typing.get_origin(hint) is tuple and value is not None:
        elements = tuple(value) if isinstance(value, list | tuple) else (value,)
        return tuple(_coerce(element, part) for element, part in zip(_element_hints(hint, len(elements)), elements))
    raise ValueError


def _element_hints(hint: Any, length: int) -> tuple[Any, ...]:
    if typing.get_origin(hint) is not tuple:
        raise ValueError
    arguments = typing.get_args(hint)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return (arguments[0],) * length
    if len(arguments) != length:
        raise ValueError
    return arguments


def _type_of(value: object) -> Any:
    """Return the type that a default stands for; an empty tuple or None takes anything."""
    if isinstance(value, list | tuple):
        kinds = {_type_of(element) for element in value}
        kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else Any
        return types.GenericAlias(tuple, (kind, ...))
    return type(value) if isinstance(value, bool | int | float | str) else Any


def _words(hint: Any) -> str:
    members = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    return " or ".join(_WORDS.get(member) or _words_of_container(member) for member in members)


def _words_of_container(hint: Any) -> str:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return " | ".join(map(str, arguments))
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return f"comma list of: {_words(arguments[0])}"
    return f"{len(arguments)} values: {', '.join(_words(argument) for argument in arguments)}"
