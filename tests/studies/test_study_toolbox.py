"""Section 4, sentence by sentence: every check holds, can fail, and is counted."""

from __future__ import annotations

import pandas as pd
import pytest

from fairfront import metrics
from fairfront.runs.progress import quiet
from fairfront.studies import toolbox as study


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return study.run(study.Parameters(profile="smoke"), quiet)


def test_every_sentence_is_tried_and_holds(tables) -> None:
    checks = tables["checks"]
    assert len(checks) == 8 and checks.holds.all() and not checks.sentence.duplicated().any()
    assert (checks[["tried", "seen"]] != "").all(axis=None)
    assert study.facts(tables, study.Parameters())["toolbox_holds"] == "8 of 8"


def test_a_metric_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "names", lambda: ("demographic_parity", "hsic"))
    found = study._seven_metrics()
    assert not found.holds and found.seen == "2 of them"


def test_the_claim_is_judged_by_the_checks(tables) -> None:
    (measured,) = study.measure(tables, study.Parameters())
    assert measured.claim == "badr-toolbox" and measured.verdict == "reproduced in part"
    assert "the authors' own package" in measured.reason
    fewer = {"checks": tables["checks"].assign(holds=False)}
    (measured,) = study.measure(fewer, study.Parameters())
    assert measured.verdict == "not reproduced" and "seven unfairness metrics" in measured.reason
