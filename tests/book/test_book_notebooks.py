"""nbval over the executed notebooks of the smoke profile: executed again, every compared output is the same."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path

import nbformat
import pytest
from built_book import ROOT

from fairfront.runs.notebooks import cores

pytestmark = pytest.mark.book

SANITIZE = Path(__file__).with_name("nbval_sanitize.cfg")
COMPARED = "NBVAL_CHECK_OUTPUT"


def nbval(*notebooks: Path) -> subprocess.CompletedProcess[str]:
    """Execute notebooks anew and compare the outputs of the cells that ask for it."""
    command = [sys.executable, "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command += ["--rootdir", str(notebooks[0].parent), "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=600"]
    command += ["--nbval-sanitize-with", str(SANITIZE), *map(str, notebooks)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def notebook(path: Path, source: str, text: str) -> Path:
    """Write a notebook of one compared cell that has printed a text."""
    output = nbformat.v4.new_output("stream", name="stdout", text=text)
    cell = nbformat.v4.new_code_cell(f"# {COMPARED}\n{source}", outputs=[output], execution_count=1)
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=metadata), path)
    return path


def test_executed_notebooks_give_the_same_outputs_again(executed: list[Path]) -> None:
    at_once = min(cores(), len(executed))
    with ThreadPoolExecutor(at_once) as pool:
        answers = pool.map(lambda first: nbval(*executed[first::at_once]), range(at_once))
        for done in answers:
            assert done.returncode == 0, done.stdout + done.stderr


def test_every_chapter_has_numbers_and_booleans_compared(executed: list[Path]) -> None:
    for path in executed:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        texts = [str(cell.outputs) for cell in cells if COMPARED in cell.source]
        assert any(re.search(r"\d\.\d", text) for text in texts), f"no number of {path.stem} is compared"
        assert any("True" in text for text in texts), f"no check of {path.stem} is compared"


def test_executed_notebooks_hold_no_error_and_no_path_of_this_machine(executed: list[Path]) -> None:
    for path in executed:
        content = nbformat.read(path, as_version=4)
        outputs = [output for cell in content.cells for output in cell.get("outputs", [])]
        assert outputs and not [output for output in outputs if output.output_type == "error"]
        assert not [output for output in outputs if output.get("name") == "stderr"]
        assert str(ROOT) not in path.read_text("utf-8")


def test_a_changed_number_is_noticed_and_a_memory_address_is_not(tmp_path: Path) -> None:
    same = notebook(
        tmp_path / "same.ipynb", "print(f'{0.12345:.3f}', object())", "0.123 <object object at 0x7f0000000000>\n"
    )
    other = notebook(tmp_path / "other.ipynb", "print(f'{0.12345:.3f}')", "0.124\n")
    assert nbval(same).returncode == 0
    assert nbval(other).returncode == 1


@pytest.mark.parametrize("text", ["0.123", "1.0e-06", "-7", "True", "1,605", "0.57 0x"])
def test_no_sanitising_pattern_matches_a_result(text: str) -> None:
    patterns = ConfigParser(interpolation=None)
    patterns.read(SANITIZE)
    assert patterns.sections()
    for section in patterns.sections():
        assert re.sub(patterns[section]["regex"], patterns[section]["replace"], text) == text
