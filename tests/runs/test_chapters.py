from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from fairfront import datasets, paths
from fairfront.errors import ArgumentError, OutputError
from fairfront.runs import notebooks
from fairfront.studies.parameters import PROFILES


def streams(path: Path) -> str:
    """Return everything that an executed notebook has printed."""
    cells = nbformat.read(path, as_version=4).cells
    return "".join(output["text"] for cell in cells for output in cell.get("outputs", []) if "text" in output)


# -- reading


def test_a_chapter_is_what_its_script_says(toy_chapter: Path) -> None:
    chapter = notebooks.get("toy")
    assert (chapter.name, chapter.title, chapter.path) == ("toy", "A toy chapter", toy_chapter)
    assert chapter.defaults == {
        "profile": "quick",
        "seed": 0,
        "shift": 0.5,
        "task": ("a", "b"),
        "points": None,
        "limit": 3,
        "ratios": (1.0, 2.0),
    }
    assert chapter.comments["limit"] == "a seed that is not below it fails"


def test_an_unknown_chapter_is_refused_with_the_nearest(toy_chapter: Path) -> None:
    with pytest.raises(ArgumentError, match=r"^chapter: unknown: 'tyo' .*did you mean toy"):
        notebooks.get("tyo")


def test_chapters_come_in_the_books_order(folders: Path, toy_chapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        (toy_chapter.parent / f"{name}.py").write_text(toy_chapter.read_text())
    assert [chapter.name for chapter in notebooks.chapters()] == ["a", "b", "toy"]
    toc = (
        "format: jb-book\nroot: book/index\nparts:\n  - chapters:\n    - file: notebooks/toy\n    - file: notebooks/a\n"
    )
    (folders / "_toc.yml").write_text(toc)
    monkeypatch.setattr(paths, "checkout", lambda: folders)
    assert [chapter.name for chapter in notebooks.chapters()] == ["toy", "a", "b"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('# %% tags=["parameters"]', "# %%", "first code cell is not the parameters cell"),
        ("limit = 3", "limit = int(3)", "parameters cell"),
        ("limit = 3", "limit, other = 3, 4", "line .* is not an assignment"),
        ("limit = 3", "import os", "line .* is not an assignment"),
        ("limit = 3", "limit = (", "parameters cell"),
        ("seed = 0", "sed = 0", "lack profile or seed"),
    ],
)
def test_a_script_that_is_no_chapter_is_refused_by_name(toy_chapter: Path, old: str, new: str, problem: str) -> None:
    toy_chapter.write_text(toy_chapter.read_text().replace(old, new, 1))
    with pytest.raises(ArgumentError, match=rf"^chapter toy: .*{problem}"):
        notebooks.get("toy")


def test_parameters_are_described_by_the_study_and_else_by_the_cell(toy: ModuleType, toy_chapter: Path) -> None:
    chapter = notebooks.get("toy")
    found = {info.name: info for info in notebooks.parameters(chapter)}
    assert list(found) == list(chapter.defaults)
    assert found["shift"].allowed == "-10 .. 10"
    assert found["points"].by_profile["smoke"] == 2
    assert (found["limit"].type, found["limit"].help) == ("whole number", "a seed that is not below it fails")
    assert found["ratios"].type == "comma list of: number"
    assert notebooks.costs(chapter) == {"smoke": "about a blink", "quick": "", "full": ""}


# -- values


def test_values_hold_the_profile_and_what_differs(toy: ModuleType, toy_chapter: Path) -> None:
    chapter = notebooks.get("toy")
    assert notebooks.values(chapter, {}) == {"profile": "quick"}
    assert notebooks.values(chapter, {"seed": "0", "task": "a,b", "shift": "0.5"}, "full") == {"profile": "full"}
    given = {"profile": "smoke", "task": "c", "points": "4", "limit": "9", "ratios": "2"}
    expected = {"profile": "smoke", "task": ("c",), "points": 4, "limit": 9, "ratios": (2.0,)}
    assert notebooks.values(chapter, given) == expected
    assert notebooks.values(chapter, given, "smoke") == expected


@pytest.mark.parametrize(
    ("given", "profile", "problem"),
    [
        ({"sead": "1"}, None, r"^parameter: unknown: 'sead' .*did you mean seed"),
        ({"seed": "x"}, None, r"^seed: wrong type: 'x' .*whole number"),
        ({"seed": "-1"}, None, r"^seed: out of range: -1"),
        ({"task": "d"}, None, r"^task: unknown: 'd'"),
        ({"limit": "x"}, None, r"^limit: wrong type: 'x'"),
        ({"ratios": "1,x"}, None, r"^ratios: wrong type"),
        ({"profile": "huge"}, None, r"^profile: unknown: 'huge'"),
        ({}, "huge", r"^profile: unknown: 'huge'"),
        ({"profile": "smoke"}, "full", r"^profile: --profile full against -p profile=smoke"),
    ],
)
def test_values_that_cannot_be_are_refused(
    toy: ModuleType, toy_chapter: Path, given: dict[str, str], profile: str | None, problem: str
) -> None:
    with pytest.raises(ArgumentError, match=problem):
        notebooks.values(notebooks.get("toy"), given, profile)


def test_without_a_study_the_cell_checks_and_the_profile_still_counts(toy_chapter: Path) -> None:
    chapter = notebooks.get("toy")
    assert notebooks.values(chapter, {"points": "4", "task": "d"}) == {"profile": "quick", "points": 4, "task": ("d",)}
    with pytest.raises(ArgumentError, match=r"^profile: unknown: 'huge'"):
        notebooks.values(chapter, {}, "huge")


def test_profile_and_parameters_are_part_of_the_path(folders: Path) -> None:
    plain = {profile: notebooks.folder({"profile": profile}) for profile in PROFILES}
    assert plain["smoke"] == folders / "build" / "notebooks" / "smoke"
    others = [notebooks.folder({"profile": "smoke", "task": task}) for task in (("a",), ("b",))]
    assert len({*plain.values(), *others}) == 5
    assert all(other.name.startswith("smoke@") for other in others)


# -- executing


@pytest.mark.book
def test_an_executed_notebook_is_up_to_date_until_something_changes(
    toy: ModuleType,
    toy_chapter: Path,
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    place = notebooks.execute("toy", profile="quick")
    assert place == folders / "build" / "notebooks" / "quick" / "toy.ipynb"
    assert "executing (quick)" in capfd.readouterr().err
    assert "quick 0 0.5 ('a', 'b') None 3 (1.0, 2.0)\n" in streams(place)
    assert "1 module://matplotlib_inline.backend_inline\n" in streams(place)
    assert os.environ["MPLBACKEND"] == "agg"
    assert "OMP_NUM_THREADS" not in os.environ

    # Nothing in it names this machine, this run or a cell that was not there.
    notebook = nbformat.read(place, as_version=4)
    text = place.read_text()
    for root in (str(paths.checkout()), sys.prefix, str(Path.home()), str(folders)):
        assert root not in text
    assert "papermill" not in text
    assert not [cell for cell in notebook.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    assert [cell.id for cell in notebook.cells] == [f"cell-{number}" for number in range(len(notebook.cells))]
    assert list(place.parent.iterdir()) == [place]

    before = place.stat().st_mtime_ns
    assert notebooks.execute("toy", {"seed": "0"}) == place
    assert place.stat().st_mtime_ns == before
    assert "up to date (quick)" in capfd.readouterr().err

    # A changed script, or a damaged notebook, is executed again; and gives the same bytes where nothing else differs.
    place.write_text(text[:500])
    notebooks.execute("toy")
    assert place.read_text() == text
    toy_chapter.write_text(
        toy_chapter.read_text().replace('"NBVAL', '"').replace("print(profile", 'print("new", profile')
    )
    notebooks.execute("toy")
    assert "new quick" in streams(place)


@pytest.mark.parametrize("changed", ["script", "grid", "figure", "data", "version", "raw file"])
def test_the_key_is_of_everything_that_counts(
    toy: ModuleType, toy_chapter: Path, folders: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    chapter, chosen = notebooks.get("toy"), {"profile": "smoke"}
    before = notebooks._key(chapter, chosen)
    assert notebooks._key(chapter, chosen) == before
    assert notebooks._key(chapter, {"profile": "quick"}) != before
    match changed:
        case "script":
            toy_chapter.write_text(toy_chapter.read_text() + "\n# %% [markdown]\n# More.\n")
        case "figure":
            script = folders / "studies" / "toy.py"
            script.write_text(script.read_text().replace("return 1", "return 2"))
        case "grid":
            monkeypatch.setattr(notebooks.provenance, "package_files_digest", lambda: "other")
        case "data":
            (folders / "data").mkdir()
            registry = (paths.data() / "registry.toml").read_text(encoding="utf-8")
            (folders / "data" / "registry.toml").write_text(f"{registry}\n# more\n", encoding="utf-8")
            monkeypatch.setattr(paths, "data", lambda: folders / "data")
        case "version":
            monkeypatch.setattr(notebooks.provenance, "versions", lambda: {"numpy": "0"})
        case "raw file":
            raw = folders / "raw" / datasets.info("dutch").file.raw[0].path
            raw.parent.mkdir(parents=True)
            raw.write_text("rows")
            monkeypatch.setenv("FAIRFRONT_DATA", str(folders / "raw"))
    assert notebooks._key(chapter, chosen) != before


@pytest.mark.book
def test_parameters_reach_the_notebook_as_they_are(toy: ModuleType, toy_chapter: Path, folders: Path) -> None:
    given = {"task": "c", "points": "4", "shift": "-1e-3", "ratios": "1,2,3"}
    place = notebooks.execute("toy", given, "smoke", folders / "out")
    assert place == folders / "out" / "toy.ipynb"
    assert "smoke 0 -0.001 ('c',) 4 3 (1.0, 2.0, 3.0)\n" in streams(place)
    kept = notebooks.folder(notebooks.values(notebooks.get("toy"), given, "smoke")) / "toy.ipynb"
    assert kept.read_text() == place.read_text()
    about = json.loads(place.read_text())["metadata"]["fairfront"]
    assert about["profile"] == "smoke"
    assert about["parameters"]["task"] == ["c"]
    # Executed once: for another folder it is only copied.
    assert notebooks.execute("toy", given, "smoke", folders / "again").read_text() == place.read_text()
    assert [path.name for path in (folders / "again").iterdir()] == ["toy.ipynb"]


@pytest.mark.book
def test_a_failing_cell_is_named_and_what_was_executed_is_kept(toy_chapter: Path, folders: Path) -> None:
    problem = r"^chapter toy, code cell 5 \(assert seed < limit.*\): AssertionError: the seed is too large\nkept: "
    with pytest.raises(notebooks.ExecutionError, match=problem):
        notebooks.execute("toy", {"seed": "3"}, out=folders / "out")
    assert [path.name for path in (folders / "out").iterdir()] == ["toy.failed.ipynb"]
    assert "quick 3 0.5" in streams(folders / "out" / "toy.failed.ipynb")
    assert not list((folders / "build").rglob("*.ipynb"))
    # A good run with the same parameters takes the failed one away.
    toy_chapter.write_text(toy_chapter.read_text().replace("assert seed", "assert 0 * seed"))
    notebooks.execute("toy", {"seed": "3"}, out=folders / "out")
    assert [path.name for path in (folders / "out").iterdir()] == ["toy.ipynb"]


@pytest.mark.book
def test_a_kernel_that_dies_is_an_error(toy_chapter: Path, folders: Path) -> None:
    text = toy_chapter.read_text().replace("assert seed < limit", "os._exit(1)\nassert seed < limit")
    toy_chapter.write_text(text)
    with pytest.raises(notebooks.ExecutionError, match=r"^chapter toy, the kernel died"):
        notebooks.execute("toy")


def test_a_folder_that_cannot_be_written_is_found_out_first(
    toy_chapter: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "_run", lambda *arguments: pytest.fail("executed"))
    (folders / "file").write_text("")
    with pytest.raises(OutputError, match=r"^--out: cannot write to "):
        notebooks.execute("toy", out=folders / "file" / "out")


def _half(number: int, log: Path) -> int:
    """Divide 10 by a number, in another process, and note that it was tried."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number == 0:
        raise ArgumentError("number", "is zero", "another one")
    return 10 // number


def test_calls_at_once_give_what_calls_in_a_row_give(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert notebooks._at_once(_half, [(5, log), (2, log), (1, log)], 2) == [2, 5, 10]
    assert sorted(log.read_text().split()) == ["1", "2", "5"]


def test_after_an_error_no_other_call_is_begun(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(ArgumentError, match=r"^number: is zero \(another one\)$"):
        notebooks._at_once(_half, [(0, log), (7, log), (7, log)], 1)
    assert log.read_text() == "0\n"


def test_chapters_are_executed_by_at_least_one(toy_chapter: Path) -> None:
    with pytest.raises(ArgumentError, match=r"^workers: out of range: 0"):
        notebooks.execute_all({"toy": {"profile": "smoke"}}, workers=0)
