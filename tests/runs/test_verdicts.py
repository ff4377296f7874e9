"""A chapter's verdicts stand beside the claims, and are held to the tolerances that the claims' list names."""

from __future__ import annotations

import pytest

from fairfront import runs
from fairfront.runs.ledger import claims
from fairfront.studies import pareto_inefficiency as study


def test_a_row_per_measured_claim(toy, folders) -> None:
    result = runs.compute(toy, toy.Parameters(profile="smoke"), progress=False)
    (row,) = runs.verdicts(result).to_dict("records")
    claim = next(claim for claim in claims() if claim.id == "badr-prop1")
    assert row["claim"] == "badr-prop1" and row["statement"] == claim.statement and row["item"] == "Proposition 1"
    assert row["verdict"] == "reproduced" and row["profile"] == "smoke" and row["data"] == "toy rows"


def test_the_first_chapter_uses_the_tolerances_of_the_list() -> None:
    tolerance = {claim.id: claim.tolerance for claim in claims()}
    assert tolerance["badr-prop1"] == tolerance["badr-prop3"] == study.EFFICIENT
    assert tolerance["badr-fig1-path"] == study.DOMINATED


@pytest.mark.parametrize("identifier", ["badr-prop1", "badr-prop2", "badr-prop3", "badr-fig1-path", "badr-fig1-metric"])
def test_the_first_chapter_is_named_by_its_claims(identifier: str) -> None:
    claim = next(claim for claim in claims() if claim.id == identifier)
    assert claim.chapter == "pareto_inefficiency" and claim.check
