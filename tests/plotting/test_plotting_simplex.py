"""The triangle's geometry, what is drawn on it, and the interactive page in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from fairfront.pareto import three_group_weights
from fairfront.plotting import STRATEGIES, barycentric, draw_simplex, simplex_explorer

RESOLUTION = 10


def _explored() -> list[dict[str, Any]]:
    """Two data sets of different groups; the metrics are simple functions of the weights."""
    weights = three_group_weights(RESOLUTION)
    points = np.rint(weights[:, :2] * RESOLUTION).astype(int).tolist()

    def one(title: str, groups: list[str], shift: float) -> dict[str, Any]:
        strategies = [
            {"name": name, "weights": [0.2, 0.3, 0.5], "value": shift + k} for k, name in enumerate(STRATEGIES)
        ]
        return {
            "title": title,
            "groups": groups,
            "resolution": RESOLUTION,
            "points": points,
            "losses": (weights + shift).round(5).tolist(),
            "metrics": [
                {"name": name, "values": values.round(5).tolist(), "strategies": strategies, "minima": [strategies[0]]}
                for name, values in (("first", weights[:, 0] + shift), ("second", weights[:, 1] ** 2))
            ],
        }

    return [one("one </script> data", ["a", "b < c", "d"], 1.0), one("other data", ["e", "f", "g"], 2.0)]


def test_corners_edges_and_middle() -> None:
    height = np.sqrt(3) / 2
    assert barycentric(np.eye(3)) == pytest.approx(np.array([[0.5, height], [0, 0], [1, 0]]))
    assert barycentric([0, 0.5, 0.5]) == pytest.approx(np.array([[0.5, 0]]))
    assert barycentric([1 / 3] * 3) == pytest.approx(np.array([[0.5, height / 3]]))


def test_colours_run_from_the_least_value_to_the_99th_percentile() -> None:
    weights = three_group_weights(20)
    values = weights[:, 0] ** 2
    values[0] = 1e6
    _, ax = plt.subplots()
    mesh = draw_simplex(ax, weights, values, ("x", "y", "z"))
    shown = np.asarray(mesh.get_array())
    assert shown.min() == 0 and mesh.get_clim() == (0, 1)
    assert shown == pytest.approx((values - values.min()) / (np.quantile(values, 0.99) - values.min()))
    assert {"x", "y", "z", "0.25", "0.5", "0.75"} == {text.get_text() for text in ax.texts}
    plt.close("all")


def test_a_constant_is_drawn() -> None:
    weights = three_group_weights(4)
    _, ax = plt.subplots()
    assert (draw_simplex(ax, weights, np.ones(len(weights)), "123").get_array() == 0).all()
    plt.close("all")


def test_the_page_holds_its_numbers_and_asks_nobody() -> None:
    page = simplex_explorer(_explored(), name="x", label='a "label"', fallback="no <script>")
    text = page._repr_html_()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert 'aria-label="a &quot;label&quot;"' in text and "no &lt;script&gt;" in text
    numbers = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    assert [s["title"] for s in numbers["sets"]] == ["one </script> data", "other data"]
    assert numbers["marks"].keys() == STRATEGIES.keys()
    assert not re.search(r"@[A-Z]+@", text)
    assert "characters" in repr(page)


@pytest.fixture(scope="module")
def tab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    page: Path = tmp_path_factory.mktemp("page") / "page.html"
    html = simplex_explorer(_explored(), name="x", label="map", fallback="see the figure").text
    page.write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
    tab = browser.new_page(viewport={"width": 900, "height": 700})
    tab.complaints = []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page_file = page
    yield tab
    tab.close()


def _here(tab: Any) -> list[list[str]]:
    return [row.split("\t") for row in tab.locator("table.here").inner_text().splitlines()]


@pytest.mark.browser
def test_pointing_shows_weights_risks_and_metric(tab: Any) -> None:
    tab.goto(tab.page_file.as_uri())
    box = tab.locator("svg").bounding_box()
    # The corner of the first group: (200, 0) in a view box from (-30, -52), 460 wide.
    scale = box["width"] / 460
    tab.mouse.move(box["x"] + 230 * scale, box["y"] + 52 * scale)
    assert _here(tab)[1:] == [
        ["a", "1.00", "2.0000"],
        ["b < c", "0.00", "1.0000"],
        ["d", "0.00", "1.0000"],
        ["first", "", "2.0000"],
    ]
    # A point right of the triangle: the nearest weights are shown.
    tab.mouse.move(box["x"] + 455 * scale, box["y"] + 398 * scale)
    assert [row[1] for row in _here(tab)[1:4]] == ["0.00", "0.00", "1.00"]
    assert tab.complaints == []


@pytest.mark.browser
def test_choices_and_arrow_keys(tab: Any) -> None:
    tab.goto(tab.page_file.as_uri())
    tab.select_option("select.data", "other data")
    tab.select_option("select.metric", "second")
    assert [row[0] for row in _here(tab)] == ["group", "e", "f", "g", "second"]
    before = [float(row[1]) for row in _here(tab)[1:4]]
    tab.locator("svg").focus()
    tab.keyboard.press("ArrowUp")
    after = [float(row[1]) for row in _here(tab)[1:4]]
    assert np.subtract(after, before) == pytest.approx([0.1, 0.0, -0.1])
    strategies = tab.locator("table.strategies").inner_text()
    assert all(mark.label in strategies for mark in STRATEGIES.values())
    assert tab.locator("svg polygon").count() == 66
    assert tab.complaints == []


@pytest.mark.browser
def test_without_a_script_the_reader_is_sent_to_the_figure(tab: Any) -> None:
    plain = tab.context.browser.new_context(java_script_enabled=False).new_page()
    plain.goto(tab.page_file.as_uri())
    assert "see the figure" in plain.locator("noscript").inner_text()
    assert not plain.locator("svg").is_visible()
