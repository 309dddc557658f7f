"""Take the README's picture of a page: ``python docs/images/picture.py demo/evaluation-*/page.html``.

Needs Chromium and the package playwright (extra dev). Writes ``page.png`` beside this file.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 1330
DRAWN = "[...document.querySelectorAll('.chart')].every(one => one.querySelector('svg.marks'))"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(page_file: str) -> None:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit("no Chromium is installed (Debian: apt-get install chromium)")
    target = Path(__file__).with_name("page.png")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(Path(page_file).absolute().as_uri(), timeout=120_000)
        page.wait_for_function(DRAWN, timeout=120_000)
        page.add_style_tag(content=".vega-embed summary { display: none !important; }")
        page.screenshot(path=target, timeout=120_000)
        browser.close()
    size = target.stat().st_size
    sys.exit(f"{target}: {size:,} bytes: make HEIGHT smaller" if size > 300_000 else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
