"""The pages of the built book as files: whole, offline, captioned, and honest about where their numbers come from."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from built_book import ROOT, Book, Page, chapters, toc

from fairfront import datasets
from fairfront.runs.ledger import claims

pytestmark = pytest.mark.book

NOT_EMBEDDED = {"Helmholtz", "Burgers", "Klein-Gordon", "CIFAR", "synthetic"}
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}


def resources(page: Page) -> list[str]:
    """Return the addresses of everything that a browser loads with a page."""
    addresses = [e.attributes.get(LOADED[e.tag], "") for e in page.elements if e.tag in LOADED]
    links = [e.attributes.get("href", "") for e in page.all("link") if e.attributes.get("rel") != "canonical"]
    return [address for address in (*addresses, *links) if address]


def test_every_page_of_the_contents_is_built(book: Book) -> None:
    assert set(toc()) <= set(book.names())


def test_every_chapter_of_the_repository_is_in_the_contents() -> None:
    assert {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.py")} == set(chapters())


def test_no_page_loads_anything_from_another_host(book: Book) -> None:
    foreign = {(n, a) for n in book.names() for a in resources(book.page(n)) if urlsplit(a).scheme not in ("", "data")}
    assert not foreign and not any(a.startswith("//") for n in book.names() for a in resources(book.page(n)))


def test_every_internal_link_leads_somewhere(book: Book) -> None:
    broken = []
    for name in book.names():
        for link in book.page(name).all("a"):
            target = urlsplit(link.attributes.get("href", ""))
            if target.scheme or target.netloc or not (target.path or target.fragment):
                continue
            path = (book.html / name).parent.joinpath(unquote(target.path)).resolve() if target.path else None
            where = name if path is None else path.relative_to(book.html.resolve()).with_suffix("").as_posix()
            if path is not None and not path.is_file():
                broken.append((name, link.attributes["href"]))
                continue
            anchored = target.fragment and (path is None or path.suffix == ".html")
            if anchored and unquote(target.fragment) not in book.page(where).ids:
                broken.append((name, link.attributes["href"]))
    assert not broken


def test_no_button_leads_to_a_repository_or_a_server(book: Book) -> None:
    for name in toc():
        classes = " ".join(e.attributes.get("class", "") for e in book.page(name).elements)
        for button in ("launch", "repository-button", "issues-button", "edit-button", "thebe"):
            assert button not in classes, name


def test_full_mathjax_bundle_is_the_one_that_is_loaded(book: Book) -> None:
    mathjax = {
        a.rpartition("/")[2].partition("?")[0] for n in book.names() for a in resources(book.page(n)) if "mathjax" in a
    }
    assert mathjax == {"tex-chtml-full.js"}
    assert (book.html / "_static" / "mathjax" / "tex-chtml-full.js").is_file()


@pytest.mark.parametrize("name", chapters())
def test_every_figure_of_a_chapter_has_a_caption_and_a_text_alternative(book: Book, name: str) -> None:
    images = [image for image in book.page(name).all("img") if image.inside("article")]
    assert images
    for image in images:
        figure = image.inside("figure")
        assert figure is not None and "Fig." in figure.text, "a figure without a number and a caption"
        assert len(image.attributes.get("alt", "")) > 20, "a text alternative says what the figure shows"
        assert "_build" not in image.attributes["alt"] and ".png" not in image.attributes["alt"]


@pytest.mark.parametrize("name", chapters())
def test_every_caption_names_data_profile_and_variant(book: Book, name: str) -> None:
    captions = [e.text for e in book.page(name).all("figcaption")]
    infos = [datasets.info(known) for known in datasets.names()]
    data = {info.name for info in infos} | {info.title.split()[0] for info in infos} | NOT_EMBEDDED
    assert captions
    for caption in captions:
        assert "profile" in caption, caption
        assert "variant" in caption, caption
        assert any(name in caption for name in data), caption


@pytest.mark.parametrize("name", toc())
def test_no_page_tells_of_the_machine_that_built_it(book: Book, name: str) -> None:
    source = (book.html / f"{name}.html").read_text("utf-8")
    assert str(ROOT) not in source


def test_ledger_page_lists_every_claim_with_a_verdict(book: Book) -> None:
    rows = [e for e in book.page("book/ledger").all("tr") if e.inside("tbody")]
    assert len(rows) == len(claims()) == 87
    text = " ".join(" ".join(row.text.split()) for row in rows)
    assert all(" ".join(claim.statement.split()) in text for claim in claims())


def test_landing_page_says_what_is_reproduced(book: Book) -> None:
    text = " ".join(next(e for e in book.page("book/index").all("article")).text.split())
    for word in ("For whom", "Read", "Rerun", "Teach", "What is reproduced so far", "Proposition 1", "Figure 1, top"):
        assert word in text
