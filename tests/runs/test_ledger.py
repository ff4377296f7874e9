from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from fairfront import paths, studies
from fairfront.errors import ArgumentError, DataError
from fairfront.runs import compute, provenance
from fairfront.runs.ledger import NOT_MEASURED, VERDICTS, ClaimRecord, Measurement, checked, claims, ledger

FIXED = Path(__file__).parents[3] / "shared" / "design" / "claims.toml"


def record(identifier: str = "badr-prop1", profile: str | None = None) -> ClaimRecord:
    return next(found for found in ledger(profile) if found.id == identifier)


@pytest.mark.skipif(not FIXED.is_file(), reason="the fixed list of claims is not beside this checkout")
def test_claims_are_the_fixed_list() -> None:
    fixed = tomllib.loads(FIXED.read_text(encoding="utf-8"))["claim"]
    ours = tomllib.loads((paths.data() / "claims.toml").read_text(encoding="utf-8"))["claim"]
    assert len(fixed) == 87
    added = {"chapter", "check", "tolerance"}
    assert [{key: value for key, value in claim.items() if key not in added} for claim in ours] == fixed
    assert all(added <= claim.keys() for claim in ours)


def test_claims_are_whole() -> None:
    found = claims()
    assert len({claim.id for claim in found}) == len(found) == 87
    assert {claim.paper for claim in found} == {"badr", "spbm"}
    for claim in found:
        assert claim.id.startswith(f"{claim.paper}-")
        assert claim.item and claim.kind and claim.statement
        assert bool(claim.check) == bool(claim.chapter)
        assert claim.tolerance is None or claim.tolerance > 0
    chapters = {claim.id: claim.chapter for claim in found if claim.chapter}
    assert {"badr-prop1", "badr-prop2", "badr-prop3", "badr-fig1-path", "badr-fig1-metric"} <= set(chapters)
    assert set(chapters.values()) <= set(studies.names()), "a claim names a chapter without a study"


def test_the_ledger_has_every_claim_in_order(folders: Path) -> None:
    found = ledger()
    assert [entry.id for entry in found] == [claim.id for claim in claims()]
    for entry, claim in zip(found, claims(), strict=True):
        assert (entry.statement, entry.paper_value) == (claim.statement, claim.paper_value)
        assert entry.verdict == NOT_MEASURED[0 if claim.chapter else 1]
        assert entry.measured == entry.profile == entry.data == entry.reason == ""
    keys = {"id", "paper", "item", "statement", "paper_value", "measured", "profile", "data", "verdict", "chapter"}
    assert keys <= dataclasses.asdict(found[0]).keys()


def test_a_measurement_in_the_store_is_in_the_ledger(toy: ModuleType) -> None:
    result = compute("toy")
    found = record()
    assert found.measured == result.measurements[0].measured
    assert (found.profile, found.verdict, found.data) == ("quick", "reproduced", "toy rows")
    assert record("badr-prop2").verdict == NOT_MEASURED[0]


def test_a_larger_profile_and_default_parameters_come_first(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "now", lambda: "2020-01-01T00:00:00+00:00")
    quick = compute("toy")
    monkeypatch.setattr(provenance, "now", lambda: "2020-01-02T00:00:00+00:00")
    smoke = compute("toy", toy.Parameters(profile="smoke"))
    compute("toy", toy.Parameters(profile="full", shift=1.0))
    assert record().measured == quick.measurements[0].measured
    assert record(profile="smoke").measured == smoke.measurements[0].measured
    full = compute("toy", toy.Parameters(profile="full"))
    assert record().measured == full.measurements[0].measured


def test_the_newest_of_equals_comes_first(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for day, seed in (("02", 1), ("03", 2), ("01", 3)):
        monkeypatch.setattr(provenance, "now", lambda day=day: f"2020-01-{day}T00:00:00+00:00")
        compute("toy", toy.Parameters(seed=seed))
    assert record().measured == compute("toy", toy.Parameters(seed=2)).measurements[0].measured


def test_what_other_code_measured_does_not_count(toy: ModuleType) -> None:
    compute("toy")
    assert record().verdict == "reproduced"
    script = studies.source("toy")
    script.write_text(script.read_text().replace("draws + parameters.shift", "draws - parameters.shift"))
    assert record().verdict == NOT_MEASURED[0]


def test_results_of_a_study_that_is_gone_do_not_count(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    compute("toy")
    monkeypatch.setattr(studies, "names", lambda: ())
    assert record().verdict == NOT_MEASURED[0]


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^profile: unknown: 'huge'"):
        ledger("huge")


def test_a_verdict_is_one_of_four_and_has_a_reason() -> None:
    assert "reproduced" in VERDICTS
    with pytest.raises(ArgumentError, match=r"^verdict: unknown: 'reproduced partly' .*did you mean reproduced"):
        Measurement("badr-prop1", "1", "reproduced partly", "why")
    for verdict in VERDICTS:
        if verdict == "reproduced":
            assert Measurement("badr-prop1", "1", verdict).reason == ""
        else:
            with pytest.raises(ArgumentError, match=r"^reason: missing for badr-prop1"):
                Measurement("badr-prop1", "1", verdict)


def test_measurements_name_claims_that_exist_once() -> None:
    one = Measurement("badr-prop1", "1", "reproduced")
    assert checked([one]) == (one,)
    with pytest.raises(ArgumentError, match=r"^claim: unknown: 'badr-prp1' .*did you mean badr-prop1"):
        checked([Measurement("badr-prp1", "1", "reproduced")])
    with pytest.raises(ArgumentError, match=r"^claim: badr-prop1 is measured twice"):
        checked([one, one])


@pytest.mark.parametrize("text", ["[[claim]", "a = 1\n", '[[claim]]\nid = "x"\n', None])
def test_a_damaged_list_of_claims_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.setattr(paths, "data", lambda: tmp_path)
    if text is not None:
        (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(DataError, match=r"claims\.toml"):
        claims()
