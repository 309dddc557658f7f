"""The page in a real headless browser, from disk and offline: filters, console, widths.

Needs Chromium (Debian: ``apt-get install chromium``) and the package playwright (extra dev).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from page_results import HOSTILE, LONG, failure, results

playwright = pytest.importorskip("playwright.sync_api", reason="playwright (extra dev) drives the browser")
pytest.importorskip("vl_convert", reason="vl-convert-python (extra train) draws the plots")
from radgen.train.page import write_page  # noqa: E402

BROWSER = next(
    filter(
        None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))
    ),
    None,
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: chromium)")
# The page asks for nothing; these keep the browser itself from asking.
QUIET = [
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Opened(NamedTuple):
    """A page, and what it said: errors and warnings of the console, requests beyond its own file."""

    page: Any
    said: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", *QUIET])
        yield started
        started.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = results()
    rows = [failure("size", number, 0.2, 0.9 - number / 100) for number in range(10, 34)]
    found["results"][0]["figures"]["failures"] += rows
    file = tmp_path_factory.mktemp("page") / "page.html"
    write_page(found, file)
    return file


def opened(browser: Any, path: Path, width: int, **more: Any) -> Opened:
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **more)
    context.set_default_timeout(120_000)  # a busy machine draws some thirty plots slowly
    page, said = context.new_page(), []
    page.on(
        "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    page.goto(path.as_uri())
    return Opened(page, said)


@pytest.fixture
def desktop(browser: Any, path: Path) -> Iterator[Opened]:
    found = opened(browser, path, 1440)
    found.page.wait_for_function(
        "document.querySelectorAll('.chart').length === document.querySelectorAll('.chart svg.marks').length"
    )
    yield found
    found.page.context.close()


def shown(page: Any) -> list[str]:
    return page.locator("article.failure:visible header code").all_text_contents()


def test_filters_choose_and_the_console_is_silent(desktop: Opened) -> None:
    page, said = desktop
    assert len(shown(page)) == 20  # of 27: the rest behind "Show more"
    assert page.locator(".count").text_content() == "27 of 27 triplets, 20 shown"
    page.get_by_role("button", name="Show more").click()
    assert len(shown(page)) == 27
    assert not page.get_by_role("button", name="Show more").is_visible()

    page.get_by_role("button", name="density").click()
    assert shown(page) == ["density-3"]
    assert page.locator(".count").text_content() == "1 of 27 triplets, 1 shown"
    assert page.get_by_role("button", name="density").get_attribute("aria-pressed") == "true"
    assert page.get_by_role("button", name="all").get_attribute("aria-pressed") == "false"

    page.get_by_role("button", name="all").click()
    page.get_by_label("Misordered by").select_option(label=LONG)
    assert shown(page) == ["size-1"]
    page.get_by_label("Misordered by").select_option(label="any model")
    page.get_by_label("Text or state").fill("MASS left")
    assert shown(page) == ["density-3"]
    page.get_by_label("Text or state").fill("no such words")
    assert shown(page) == []
    assert "No triplet fits" in page.locator(".count").text_content()
    assert said == []


def test_cards_are_in_the_order_of_the_chosen_model(desktop: Opened) -> None:
    page, _ = desktop
    page.get_by_label("Misordered by").select_option(label="before")
    # 0.9 − 0.10 − 0.2 = 0.6 and on downwards; density-3 misses by 0.4, size-30 to 33 by 0.4 to 0.37.
    assert shown(page)[:3] == ["size-10", "size-11", "size-12"]


def test_text_of_the_results_runs_nothing(desktop: Opened) -> None:
    page, said = desktop
    assert page.evaluate("document.scripts.length") == 4
    assert HOSTILE in page.locator("#skipped").text_content()
    assert said == []


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
def test_nothing_lies_beyond_the_edge(browser: Any, path: Path, width: int) -> None:
    page, said = opened(browser, path, width)
    page.wait_for_function(
        "document.querySelectorAll('.chart').length === document.querySelectorAll('.chart svg.marks').length"
    )
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = page.evaluate(
        """width => [...document.querySelectorAll('main *')]
        .filter(one => !one.closest('.vega-embed details, thead, .scroll table'))
        .filter(one => one.getBoundingClientRect().right > width + 1)
        .map(one => one.tagName + '.' + one.getAttribute('class'))""",
        width,
    )
    assert wide == []
    assert said == []
    page.context.close()


def test_tables_and_failures_stand_without_javascript(browser: Any, path: Path) -> None:
    page, _ = opened(browser, path, 1440, java_script_enabled=False)
    assert page.locator("table:visible").count() > 8
    assert page.locator("article.failure:visible").count() == 27
    assert page.get_by_text("The plot needs JavaScript").first.is_visible()
    assert not page.get_by_role("button", name="density").is_visible()
    page.context.close()
