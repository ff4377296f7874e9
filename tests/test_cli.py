from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from fairfront import cli, datasets
from fairfront.runs import book, compute, notebooks
from fairfront.runs.ledger import claims

Outcome = tuple[int, str, str]


@pytest.fixture
def fairfront(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs the command line and gives status, standard output and standard error."""

    def run(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        code = ended.value.code
        return (code if isinstance(code, int) else 0, *capfd.readouterr())

    return run


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fairfront", *arguments], capture_output=True, text=True, check=False)


def files(folder: Path) -> list[Path]:
    """Return what lies in a folder, without the byte code that importing a toy leaves beside it."""
    return sorted(path for path in folder.rglob("*.*") if "__pycache__" not in path.parts)


# -- what there is


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom fairfront import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'torch', 'jax', 'cvxpy', 'matplotlib', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "study" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_as_a_module_and_without_arguments_it_shows_help() -> None:
    done = process("--help")
    assert done.returncode == 0
    for command in ("list", "describe", "run", "study", "book", "claims", "data"):
        assert command in done.stdout
    assert "describe" in process().stdout


def test_list_shows_chapters_studies_and_what_is_stored(
    fairfront: Callable[..., Outcome], toy: ModuleType, toy_chapter: Path
) -> None:
    _, out, _ = fairfront("list")
    assert "A toy chapter" in out
    assert next(line for line in out.splitlines() if "A toy study" in line).split()[-1] == "none"
    compute("toy", toy.Parameters(profile="smoke"))
    compute("toy", toy.Parameters(seed=1))
    status, out, err = fairfront("list")
    assert (status, err) == (0, "")
    assert "smoke (1), quick (1)" in next(line for line in out.splitlines() if "A toy study" in line)


def test_describe_shows_parameters_and_costs(
    fairfront: Callable[..., Outcome], toy: ModuleType, toy_chapter: Path
) -> None:
    status, out, err = fairfront("describe", "toy")
    assert (status, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "A toy chapter" in out
    for words in ("number", "0.5", "-10 .. 10", "what is added"):
        assert words in lines["shift"]
    for words in ("comma list of: word", "a,b", "a | b | c"):
        assert words in lines["task"]
    assert "smoke 2, quick 5, full 50" in lines["points"]
    assert "a seed that is not below it fails" in lines["limit"]
    assert "about a blink" in lines["smoke"]
    assert "not stated" in lines["full"]


def test_describe_knows_studies_without_a_chapter(fairfront: Callable[..., Outcome], toy: ModuleType) -> None:
    status, out, _ = fairfront("describe", "toy")
    assert status == 0
    assert "A toy study" in out
    assert "limit" not in out


def test_data_list_shows_every_data_set(fairfront: Callable[..., Outcome]) -> None:
    status, out, _ = fairfront("data", "list")
    assert status == 0
    assert all(name in out for name in datasets.names())


def test_claims_as_json_has_every_claim(fairfront: Callable[..., Outcome], toy: ModuleType) -> None:
    result = compute("toy", toy.Parameters(profile="smoke"))
    status, out, err = fairfront("claims", "--json")
    assert (status, err) == (0, "")
    records = json.loads(out)
    assert [record["id"] for record in records] == [claim.id for claim in claims()]
    keys = {"id", "paper", "item", "statement", "paper_value", "measured", "profile", "data", "verdict", "chapter"}
    assert all(keys <= record.keys() for record in records)
    assert records[0]["measured"] == result.measurements[0].measured
    assert (records[0]["profile"], records[0]["verdict"]) == ("smoke", "reproduced")
    _, out, _ = fairfront("claims", "--json", "--profile", "quick")
    assert json.loads(out)[0]["verdict"] == "not run at this profile"


def test_claims_as_a_table(fairfront: Callable[..., Outcome], toy: ModuleType) -> None:
    status, out, _ = fairfront("claims")
    assert status == 0
    assert all(claim.id in out for claim in claims())


# -- study


def test_a_study_writes_its_tables_beside_each_other(
    fairfront: Callable[..., Outcome], toy: ModuleType, folders: Path
) -> None:
    out = folders / "new" / "frame.csv"
    status, said, err = fairfront(
        "study", "toy", "--profile", "smoke", "-p", "task=c", "-p", "seed=3", "--out", str(out)
    )
    assert status == 0
    assert sorted(path.name for path in out.parent.iterdir()) == ["frame.csv", "frame.extra.csv"]
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["task", "value", "note"]
    assert frame["note"].isna().all()
    expected = np.random.default_rng(3).normal(size=2) + 0.5
    np.testing.assert_array_equal(frame["value"], expected)
    assert f"{out}: 2 rows" in said
    assert f"{out.with_name('frame.extra.csv')}: 1 rows" in said
    assert "computed (in " in said
    assert err.startswith("toy: 1 in ")


def test_a_second_run_says_that_it_is_reused_and_parquet_holds_the_same(
    fairfront: Callable[..., Outcome], toy: ModuleType, toy_runs: Callable[[], int], folders: Path
) -> None:
    fairfront("study", "toy", "--out", str(folders / "frame.csv"))
    status, said, err = fairfront("study", "toy", "--out", str(folders / "frame.parquet"))
    assert (status, err, toy_runs()) == (0, "", 1)
    assert "reused from the store" in said
    csv, parquet = pd.read_csv(folders / "frame.csv"), pd.read_parquet(folders / "frame.parquet")
    pd.testing.assert_series_equal(csv["value"], parquet["value"])
    assert (folders / "frame.extra.parquet").is_file()
    _, said, _ = fairfront("study", "toy", "--refresh")
    assert (toy_runs(), "computed (in " in said, "values: 10 rows" in said) == (2, True, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["tyo"], "study: unknown: 'tyo' (did you mean toy? "),
        (["toy", "-p", "sihft=1"], "parameter: unknown: 'sihft' (did you mean shift? "),
        (["toy", "-p", "shift=x"], "shift: wrong type: 'x' (expected number)"),
        (["toy", "-p", "shift=11"], "shift: out of range: 11.0 (allowed: -10 .. 10)"),
        (["toy", "-p", "task=a,d"], "task: unknown: 'd' ("),
        (["toy", "-p", "shift"], "-p: not an assignment: 'shift' ("),
        (["toy", "-p", "=1"], "-p: not an assignment: '=1' ("),
        (["toy", "-p", "seed=1", "-p", "seed=2"], "-p: seed is given twice ("),
        (["toy", "--profile", "huge"], "profile: unknown: 'huge' ("),
        (["toy", "--profile", "full", "-p", "profile=smoke"], "profile: --profile full against -p profile=smoke ("),
        (["toy", "--out", "frame.xls"], "--out: unknown ending: 'frame.xls' ("),
        (["toy", "--out", "frame"], "--out: unknown ending: 'frame' ("),
        (["toy", "--out", "file/frame.csv"], "--out: cannot write to file: "),
    ],
)
def test_what_a_study_cannot_do_is_one_clear_line_and_leaves_nothing(
    fairfront: Callable[..., Outcome],
    toy: ModuleType,
    toy_runs: Callable[[], int],
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Sequence[str],
    problem: str,
) -> None:
    monkeypatch.chdir(folders)
    (folders / "file").write_text("kept")
    before = files(folders)
    status, out, err = fairfront("study", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1
    assert toy_runs() == 0
    assert files(folders) == before
    assert (folders / "file").read_text() == "kept"


def test_a_table_that_cannot_be_written_leaves_the_others_as_they_were(
    fairfront: Callable[..., Outcome], toy: ModuleType, folders: Path
) -> None:
    out = folders / "out"
    (out / "frame.extra.csv").mkdir(parents=True)
    (out / "frame.csv").write_text("old")
    status, _, err = fairfront("study", "toy", "--out", str(out / "frame.csv"))
    assert status == 2
    assert "error: --out: cannot write to " in err
    assert sorted(path.name for path in out.iterdir()) == ["frame.csv", "frame.extra.csv"]
    assert (out / "frame.csv").read_text() == "old"


# -- run and book


@pytest.mark.book
def test_run_leaves_a_notebook_and_a_page(
    fairfront: Callable[..., Outcome], toy: ModuleType, toy_chapter: Path, folders: Path
) -> None:
    out = folders / "mine"
    status, said, err = fairfront("run", "toy", "-p", "task=c", "--profile", "smoke", "--out", str(out))
    assert status == 0, err
    assert said.split() == [str(out / "toy.ipynb"), str(out / "toy.html")]
    html = unescape((out / "toy.html").read_text())
    assert "Theorem 1" in html
    assert "smoke 0 0.5 ('c',) None 3 (1.0, 2.0)" in html
    assert "http://" not in html.split("</head>")[0] and "https://" not in html.split("</head>")[0]
    assert (out / "_static").is_dir()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["tyo"], "chapter: unknown: 'tyo' (did you mean toy? "),
        (["toy", "-p", "sead=1"], "parameter: unknown: 'sead' (did you mean seed? "),
        (["toy", "-p", "limit=x"], "limit: wrong type: 'x' (expected whole number)"),
        (["toy", "--profile", "huge"], "profile: unknown: 'huge' ("),
        (["toy", "--profile", "full", "-p", "profile=quick"], "profile: --profile full against -p profile=quick ("),
        (["toy", "--out", "file/out"], "--out: cannot write to file/out: "),
    ],
)
def test_what_a_chapter_cannot_do_is_one_clear_line_and_leaves_nothing(
    fairfront: Callable[..., Outcome],
    toy: ModuleType,
    toy_chapter: Path,
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Sequence[str],
    problem: str,
) -> None:
    monkeypatch.chdir(folders)
    monkeypatch.setattr(notebooks, "_run", lambda *a: pytest.fail("executed"))
    (folders / "file").write_text("")
    status, out, err = fairfront("run", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1
    assert not list(folders.rglob("*.ipynb")) + list(folders.rglob("*.html"))


@pytest.mark.book
def test_a_failing_cell_ends_the_run_with_a_status(
    fairfront: Callable[..., Outcome], toy_chapter: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders)
    status, out, err = fairfront("run", "toy", "-p", "seed=4")
    assert (status, out) == (2, "")
    assert "error: chapter toy, code cell 5 (" in err
    assert "AssertionError: the seed is too large" in err
    assert [path.name for path in (folders / "toy").iterdir()] == ["toy.failed.ipynb"]


def test_describe_names_what_there_is(fairfront: Callable[..., Outcome], toy_chapter: Path) -> None:
    status, _, err = fairfront("describe", "tyo")
    assert status == 2
    assert err.startswith("error: chapter: unknown: 'tyo' (did you mean toy? ")


def test_book_passes_on_what_it_is_told(
    fairfront: Callable[..., Outcome], folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    def build(profile: str, chapter: str | None, assignments: dict[str, str], **how: object) -> Path:
        told.append((profile, chapter, assignments, how))
        return folders / "html"

    monkeypatch.setattr(book, "build", build)
    assert fairfront("book") == (0, f"{folders / 'html' / 'index.html'}\n", "")
    own = ["--chapter", "toy", "-p", "task=a,b", "-p", "seed=1", "--not-strict", "--out", "mine", "--workers", "3"]
    fairfront("book", "--profile", "smoke", *own)
    assert told == [
        ("quick", None, {}, {"strict": True, "out": None, "workers": None}),
        ("smoke", "toy", {"task": "a,b", "seed": "1"}, {"strict": False, "out": Path("mine"), "workers": 3}),
    ]


def test_book_refuses_an_unknown_chapter_and_profile(fairfront: Callable[..., Outcome], toy_chapter: Path) -> None:
    status, out, err = fairfront("book", "--chapter", "tyo", "-p", "seed=1")
    assert (status, out) == (2, "")
    assert err.startswith("error: chapter: unknown: 'tyo' (did you mean toy? ")
    status, out, err = fairfront("book", "--profile", "huge")
    assert (status, out) == (2, "")
    assert err.startswith("error: profile: unknown: 'huge' (")
    status, out, err = fairfront("book", "--profile", "")
    assert (status, out) == (2, "")
    assert err.startswith("error: profile: unknown: '' (")


def test_usage_errors_end_with_a_status() -> None:
    for arguments in (["nothing"], ["study"], ["study", "toy", "--nothing"]):
        done = process(*arguments)
        assert done.returncode == 2
        assert "Usage" in done.stderr
