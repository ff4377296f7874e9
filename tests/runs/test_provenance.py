from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from fairfront import paths, studies
from fairfront.runs import provenance

BASE = '''"""Text."""
from fairfront.errors import ArgumentError


def run(n: int) -> int:
    """Do it."""
    return _twice(n)  # a comment


def _twice(n: int) -> int:
    return 2 * n


def figure_it(n: int) -> int:
    return _axes(n)


def _axes(n: int) -> int:
    return n
'''


def of(text: str, tmp_path: Path, **options: object) -> str:
    path = tmp_path / "study.py"
    path.write_text(text)
    provenance._unit.cache_clear()
    return provenance.source_digest([path], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Text."""', '"""Other text."""'),
        ('"""Do it."""', '"""Do it well."""'),
        ("  # a comment", "  # another"),
        ("return _axes(n)", "return 3 * _axes(n)"),
        ("return n\n", "return n + 1\n"),
        ("\n\n\ndef figure_it", "\n\n\n\ndef figure_other"),
    ],
)
def test_what_changes_no_result_leaves_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert BASE.replace(old, new) != BASE
    assert of(BASE.replace(old, new), tmp_path) == of(BASE, tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 2 * n", "return 3 * n"),
        ("return _twice(n)", "return _twice(n + 1)"),
        ("import ArgumentError", "import ArgumentError, DataError"),
        ("def _axes(n: int) -> int:\n    return n", "def _axes(n: int) -> int:\n    return n\n\n\nextra = _axes(1)"),
    ],
)
def test_what_may_change_a_result_changes_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert BASE.replace(old, new) != BASE
    assert of(BASE.replace(old, new), tmp_path) != of(BASE, tmp_path)


@pytest.mark.parametrize(("old", "new"), [("return _axes(n)", "return 3 * _axes(n)"), ("return n\n", "return n + 1\n")])
def test_figures_count_where_they_are_shown(tmp_path: Path, old: str, new: str) -> None:
    assert of(BASE.replace(old, new), tmp_path, figures=True) != of(BASE, tmp_path, figures=True)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of its own in the place of fairfront's files."""
    root = tmp_path / "fairfront"
    for name in ("inner", "plotting", "studies"):
        (root / name).mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "inner" / "__init__.py").write_text("from fairfront.inner.one import first\n")
    (root / "inner" / "one.py").write_text("from .two import second\nfirst = second\n")
    (root / "inner" / "two.py").write_text("second = 2\n")
    (root / "inner" / "three.py").write_text("third = 3\n")
    (root / "plotting" / "__init__.py").write_text("colour = 1\n")
    (root / "studies" / "__init__.py").write_text("")
    (root / "studies" / "a.py").write_text("from fairfront import inner, plotting\n")
    (root / "studies" / "b.py").write_text("from ..inner import three\n")
    monkeypatch.setattr(paths, "package", lambda: root)
    return root


@pytest.mark.parametrize(
    ("study", "changed", "follows"),
    [
        ("a", "inner/__init__.py", True),
        ("a", "inner/two.py", True),
        ("a", "inner/three.py", False),
        ("a", "plotting/__init__.py", False),
        ("b", "inner/three.py", True),
        ("b", "inner/two.py", True),  # through the package's own __init__, which importing three runs too
    ],
)
def test_imports_are_followed(package: Path, study: str, changed: str, follows: bool) -> None:
    def digest() -> str:
        provenance._unit.cache_clear()
        return provenance.source_digest([package / "studies" / f"{study}.py"])

    before = digest()
    with (package / changed).open("a") as file:
        file.write("more = 1\n")
    assert (digest() != before) is follows


def test_everything_counts_where_nothing_is_left_out(package: Path) -> None:
    before = provenance.source_digest([package / "studies" / "a.py"], without=())
    (package / "plotting" / "__init__.py").write_text("colour = 2\n")
    provenance._unit.cache_clear()
    assert provenance.source_digest([package / "studies" / "a.py"], without=()) != before


def test_source_text_is_followed_like_a_file(package: Path) -> None:
    before = provenance.source_digest([], text="import fairfront.inner.three")
    (package / "inner" / "three.py").write_text("third = 4\n")
    provenance._unit.cache_clear()
    assert provenance.source_digest([], text="import fairfront.inner.three") != before


def test_package_files_count_without_the_embedded_data(package: Path) -> None:
    before = provenance.package_files_digest()
    (package / "_data").mkdir()
    (package / "_data" / "rows.parquet").write_bytes(b"1")
    assert provenance.package_files_digest() == before
    (package / "studies" / "grid.toml").write_text("a = 1\n")
    assert provenance.package_files_digest() != before


def test_canonical_json_has_one_spelling() -> None:
    assert provenance.canonical_json({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'
    assert provenance.digest({"b": 1, "a": 2}) == provenance.digest({"a": 2, "b": 1})


def test_file_digest_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert provenance.file_digest(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_commit_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    monkeypatch.setattr(paths, "checkout", lambda: tmp_path)
    git("init", "-q")
    assert provenance.commit() == {"commit": "", "modified": None}
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "m")
    assert provenance.commit() == {"commit": git("rev-parse", "HEAD"), "modified": False}
    (tmp_path / "file").write_text("2")
    assert provenance.commit()["modified"] is True


def test_no_commit_outside_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert provenance.commit() == {"commit": "", "modified": None}


def test_a_file_of_settings_that_the_code_names_counts(tmp_path: Path) -> None:
    text = BASE + '\nGRID = "grid.toml"\n'
    (tmp_path / "grids").mkdir()
    settings, other = tmp_path / "grids" / "grid.toml", tmp_path / "grids" / "other.toml"
    settings.write_text("points = 2")
    before = of(text, tmp_path)
    other.write_text("points = 2")
    assert of(text, tmp_path) == before
    settings.write_text("points = 3")
    assert of(text, tmp_path) != before


@pytest.mark.parametrize(
    ("study", "settings"), [("robustness", "hyperparameters.toml"), ("pinn_benchmark", "configurations.toml")]
)
def test_the_settings_of_grids_and_equations_count(study: str, settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    digest = provenance.file_digest

    def noted(path: Path) -> str:
        asked.append(path.name)
        return digest(path)

    monkeypatch.setattr(provenance, "file_digest", noted)
    provenance.source_digest([studies.source(study)])
    assert settings in asked
