from __future__ import annotations

import pytest

from fairfront.errors import ArgumentError
from fairfront.studies.instances import Instance


def test_an_instance_is_read_from_words() -> None:
    found = Instance.parse("adult:gender+race", groups=3)
    assert (found.data, found.sensitive, found.groups) == ("adult", ("gender", "race"), 3)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("adlut:gender", r"'adlut:gender': .*unknown: 'adlut' .*did you mean adult"),
        ("adult:gendre", r"'adult:gendre': sensitive unknown: 'gendre' .*did you mean gender"),
        ("adult", r"'adult' names no attribute \(adult:ATTRIBUTE, of "),
    ],
)
def test_what_names_no_instance_is_refused_by_the_argument_that_held_it(words: str, problem: str) -> None:
    with pytest.raises(ArgumentError, match=f"^partition: {problem}"):
        Instance.parse(words)
    with pytest.raises(ArgumentError, match=f"^population: {problem}"):
        Instance.parse(words, argument="population")
