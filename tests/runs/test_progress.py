from __future__ import annotations

import sys

import pytest

from fairfront.runs import progress


def test_lines_prints_one_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.lines(iter("abc"), "letters")) == ["a", "b", "c"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("letters: 3 in ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("asked", "terminal"), [(True, False), (False, True), (False, False)])
def test_nothing_is_shown_unless_asked_for_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked: bool, terminal: bool
) -> None:
    monkeypatch.setattr(progress, "on_terminal", lambda: terminal)
    with progress.shown(asked) as track:
        assert list(track(range(3), "steps", total=3)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_bars_on_a_terminal_keep_standard_output_clean(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown(True) as track:
        outer = [(a, b) for a in track(range(2), "outer") for b in track(range(2), "inner")]
    assert outer == [(0, 0), (0, 1), (1, 0), (1, 1)]
    out, err = capsys.readouterr()
    assert out == ""
    assert "outer" in err
