# ruff: noqa: INP001 - a script, run by its path
"""Takes the documentation's pictures of a report: `python docs/images/take.py RUN-DIR/report.html CELL`.

The report is that of a real run of examples/quickstart.yaml, written by `proctor report last`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent
WIDTH = 1180


def main() -> None:
    """Take both pictures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("report", type=Path)
    options.add_argument("cell", help="whose trajectory is shown, as scenario/server/model/replicate")
    chosen = options.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 985}, device_scale_factor=1.25)
        page.goto(chosen.report.resolve().as_uri())
        page.wait_for_selector(".toggle")
        page.screenshot(path=FOLDER / "report.png")
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="dark", device_scale_factor=1.25)
        page.goto(chosen.report.resolve().as_uri())
        page.locator(".toggle", has_text=chosen.cell).click()
        page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
        page.locator("section.cell .trail").evaluate("trail => trail.scrollIntoView()")
        page.screenshot(path=FOLDER / "report-cell.png")
        browser.close()


if __name__ == "__main__":
    main()
