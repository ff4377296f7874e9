"""The built book in a real browser: it loads without complaint, asks nobody, and can be read by day and by night.

The system's Chromium is driven by Playwright. Where there is none these tests are skipped and say so; with
FAIRFRONT_REQUIRE_BROWSER=1 that is a failure.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from built_book import Book, chapters, toc
from playwright.sync_api import Browser, Locator
from playwright.sync_api import Page as Tab

pytestmark = [pytest.mark.book, pytest.mark.browser]

GENERATED = ["genindex", "search"]
CONTRAST, CONTRAST_LARGE = 4.5, 3.0  # WCAG 2.1, level AA

# The text elements of the article whose contrast with what lies behind them is too low.
LOW_CONTRAST = """([least, leastLarge]) => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(k => top[3] * top[k] + (1 - top[3]) * below[k]);
  const luminance = c => {
    const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const found = [];
  let seen = 0;
  for (const element of document.querySelectorAll('article *, .bd-sidebar-primary a, .bd-sidebar-secondary a')) {
    const words = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join('');
    if (!words || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const back = behind(element), front = over(rgba(style.color), back);
    const [dark, light] = [luminance(front), luminance(back)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    seen += 1;
    if (ratio < (large ? leastLarge : least))
      found.push(`${ratio.toFixed(2)} <${element.tagName}> ${words.slice(0, 40)}`);
  }
  return [seen, [...new Set(found)]];
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


@dataclass
class Visit:
    """A tab and everything that it complained of or asked for."""

    tab: Tab
    origin: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tab.on(
            "console", lambda m: m.type in ("error", "warning") and self.complaints.append(f"{m.type}: {m.text}")
        )
        self.tab.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.tab.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        self.tab.on("response", lambda r: r.status >= 400 and self.complaints.append(f"{r.status}: {r.url}"))
        self.tab.on("request", lambda request: self.requests.append(request.url))

    def open(self, name: str) -> Tab:
        """Open a page and wait until it has loaded and its formulas are typeset."""
        self.tab.goto(f"{self.origin}/{name}.html", wait_until="networkidle")
        self.tab.evaluate("() => window.MathJax?.startup?.promise")
        return self.tab

    @property
    def foreign(self) -> list[str]:
        """What was asked of anybody else."""
        return [url for url in self.requests if not url.startswith((self.origin, "data:", "blob:"))]


@pytest.fixture(scope="session")
def origin(book: Book) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(book.html)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.fixture
def visit(browser: Browser, origin: str) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield Visit(context.new_page(), origin)
    context.close()


def choose(tab: Tab, mode: str) -> None:
    """Click the switch of the page until it shows a mode."""
    for _ in range(3):
        if tab.locator("html").get_attribute("data-mode") == mode:
            break
        tab.locator("button.theme-switch-button:visible").first.click()
    assert tab.locator("html").get_attribute("data-theme") == mode
    tab.wait_for_timeout(400)  # colours fade over


@pytest.mark.parametrize("name", [*toc(), *GENERATED])
def test_page_loads_without_complaint_and_asks_nobody_else(visit: Visit, name: str) -> None:
    tab = visit.open(name)
    assert len(tab.locator("main").inner_text()) > 20
    assert visit.complaints == []
    assert visit.requests and visit.foreign == []


@pytest.mark.parametrize("name", toc())
def test_formulas_are_typeset(visit: Visit, name: str) -> None:
    tab = visit.open(name)
    formulas = tab.locator("article .math")
    assert tab.locator("article mjx-container").count() >= formulas.count()
    assert tab.locator("mjx-merror, [data-mjx-error]").count() == 0
    for formula in formulas.all():
        assert formula.locator("mjx-container").count() >= 1
    prose = tab.evaluate(
        """() => { const copy = document.querySelector('article').cloneNode(true);
        copy.querySelectorAll('pre, code, script, style, mjx-container').forEach(e => e.remove());
        return copy.textContent; }"""
    )
    assert "$" not in prose and "\\\\(" not in prose and "{math}" not in prose
    if name in chapters():
        assert formulas.count() > 0


@pytest.mark.parametrize("name", chapters())
def test_figures_are_there_and_say_what_they_show(visit: Visit, name: str) -> None:
    images = visit.open(name).locator("article img")
    assert images.count() > 0
    for image in images.all():
        assert image.evaluate("e => e.complete && e.naturalWidth") > 100
        assert (image.get_attribute("alt") or "").strip()


def test_search_finds_the_chapter(visit: Visit) -> None:
    tab = visit.open("book/index")
    tab.locator("button.search-button__button:visible").first.click()
    tab.locator("dialog input[type=search]").fill("regularisation inefficiency")
    tab.keyboard.press("Enter")
    hit = tab.locator("#search-results li a[href*='notebooks/pareto_inefficiency']").first
    hit.wait_for(timeout=10_000)
    hit.click()
    tab.wait_for_url("**/notebooks/pareto_inefficiency.html*")
    assert "Pareto inefficiency" in tab.locator("article h1").first.inner_text()
    assert visit.complaints == [] and visit.foreign == []


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("name", toc())
def test_text_stands_out_from_its_background(visit: Visit, name: str, mode: str) -> None:
    tab = visit.open(name)
    choose(tab, mode)
    seen, low = tab.evaluate(LOW_CONTRAST, [CONTRAST, CONTRAST_LARGE])
    assert seen > 20
    assert low == []


@pytest.mark.parametrize("name", chapters())
def test_figures_keep_a_white_background_in_dark_mode(visit: Visit, name: str) -> None:
    tab = visit.open(name)
    choose(tab, "dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    for image in tab.locator("article img").all():
        style = image.evaluate("e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).filter]")
        assert style == ["rgb(255, 255, 255)", "none"]
        corner = image.evaluate(
            """e => { const c = document.createElement('canvas'); c.width = e.naturalWidth; c.height = e.naturalHeight;
            const d = c.getContext('2d'); d.drawImage(e, 0, 0); return [...d.getImageData(2, 2, 1, 1).data]; }"""
        )
        assert corner[3] == 255 and min(corner[:3]) > 240


@pytest.mark.parametrize("name", chapters())
def test_solutions_are_hidden_until_they_are_asked_for(visit: Visit, name: str) -> None:
    tab = visit.open(name)
    solutions: list[Locator] = tab.locator("article div.solution").all()
    assert len(solutions) >= 3
    for solution in solutions:
        body = solution.locator("p:not(.admonition-title)").first
        assert not body.is_visible()
        solution.locator(".toggle-button, .admonition-title").first.click()
        body.wait_for(state="visible")


@pytest.mark.parametrize("name", chapters())
def test_page_opens_from_a_folder_without_a_server(browser: Browser, book: Book, name: str) -> None:
    context = browser.new_context(offline=True)
    visit = Visit(context.new_page(), book.html.resolve().as_uri())
    tab = visit.open(name)
    assert tab.locator("article mjx-container").count() > 0
    assert visit.complaints == [] and visit.foreign == []
    context.close()
