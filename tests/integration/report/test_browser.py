"""The report in a real browser: opened from a file, looked at, listened to, and driven by keyboard."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from proctor.core.ids import CellKey
from proctor.core.reports.page import render_page
from proctor.core.trajectory.events import Status
from support.finished_runs import Played
from support.reports import make_facts, poison

AXE = Path(__file__).resolve().parents[3] / ".venv/npm/node_modules/axe-core/axe.min.js"
WIDTHS = (380, 900, 1440)
SCHEMES = ("light", "dark")

Opener = Callable[..., Page]


def play(cell: CellKey, chance: random.Random) -> Played:
    tools = tuple(
        (chance.choice(["run_query", "list_tables"]), Status.AGENT_ERROR if chance.random() < 0.2 else Status.OK)
        for _ in range(6)
    )
    rows = "\n".join(f"11:{chance.randint(0, 59):02} span={chance.getrandbits(64):x}" for _ in range(60))
    return Played(score=Decimal(cell.replicate) / 10, tools=tools, texts=rows, usd=Decimal("0.012"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    facts = make_facts(folder / "run", cells=24, play=play)
    files = {"plain": facts, "hostile": poison(facts)}
    for name, shown in files.items():
        (folder / f"{name}.html").write_text(render_page(shown), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in files}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        assert program, "the report is tested in a browser: install Chromium"
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser, pages: dict[str, Path]) -> Iterator[Opener]:
    """Open a page; at the end nothing may have been said on the console, asked for, or thrown."""
    seen: list[str] = []
    contexts = []

    def open_page(name: str, *, width: int = 1440, scheme: str = "light", fragment: str = "", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        address = pages[name].as_uri()
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (seen.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda request: None if request.url.startswith(address) else seen.append(f"asked {request.url}")
        )
        page.goto(address + fragment)
        page.wait_for_selector(".toggle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == []


def open_first(page: Page) -> None:
    page.locator(".toggle").first.click()
    page.wait_for_selector("section.cell .trail")


@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_opens_from_a_file_and_asks_for_nothing(opened: Opener, name: str) -> None:
    """D5, S33: no request, no console message, no dialog, no element that a hostile text brought along."""
    page = opened(name)
    for toggle in page.locator(".toggle").all()[:6]:
        toggle.click()
    page.wait_for_function("document.querySelectorAll('section.cell .trail').length === 6")
    assert page.locator("img, iframe, object, embed, link, base, a[href^=javascript]").count() == 0
    assert page.locator("script:not([type])").count() == 1
    assert page.evaluate(
        "[...document.querySelectorAll('*')].every(e => [...e.attributes].every(a => !/^on/.test(a.name)))"
    )
    text = page.evaluate("document.body.textContent")
    assert not {"\x00", "\x1b", "\x07", "\u202e", "\u2066", "\u200b"} & set(text)
    if name == "hostile":
        assert "\\u202egnihton" in text
        assert "<img src=x onerror=alert(2)>" in text


def test_markup_cannot_be_made_of_a_string(browser: Browser, pages: dict[str, Path]) -> None:
    """S33: even a script that ran could not: the policy refuses inline scripts, and every sink of markup."""
    page = browser.new_page()
    page.goto(pages["plain"].as_uri())
    refused = """() => {
      try { document.body.innerHTML = '<img src=x>'; return 'made'; } catch (error) { return error.name; }
    }"""
    assert page.evaluate(refused) == "TypeError"
    page.evaluate(
        "() => { const s = document.createElement('script'); s.append('window.ran = 1'); document.body.append(s); }"
    )
    assert page.evaluate("window.ran") is None
    page.close()


def test_a_cell_is_reached_and_read_by_keyboard_alone(opened: Opener) -> None:
    """D5: from the address bar to a tool call's result and back, without a mouse."""
    page = opened("plain")
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press("Enter")
    for _ in range(60):
        press("Tab")
        if page.evaluate("document.activeElement.className") == "toggle":
            break
    press("ArrowDown")
    press("ArrowDown")
    press("ArrowUp")
    name = page.evaluate("document.activeElement.textContent")
    assert name == page.locator(".toggle").nth(1).text_content()
    press("Enter")
    page.wait_for_selector("section.cell .trail")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    for _ in range(20):
        press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    before = page.evaluate("document.activeElement.parentElement.open")
    press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is not before
    press("Escape")
    assert page.evaluate("document.activeElement.textContent") == name
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    assert page.locator("section.cell").first.is_hidden()


def test_cells_are_sorted_and_filtered_by_keyboard(opened: Opener) -> None:
    """D5: a sort says its direction, a filter says how many are left."""
    page = opened("plain")
    sort = page.get_by_role("button", name="Score", exact=True)
    sort.focus()
    page.keyboard.press("Enter")
    scores = [float(text) for text in page.locator("#cell-table tbody tr td:nth-child(2)").all_text_contents()]
    assert scores == sorted(scores)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.get_by_label("Text").focus()
    page.keyboard.type("right/newest")
    assert page.locator("#cell-table tbody tr:visible").count() == 6
    assert page.locator("#f-count").text_content() == "6 of 28 cells"
    page.locator("#f-score").select_option("none")
    assert page.locator("#f-count").text_content() == "0 of 28 cells"
    page.get_by_role("button", name="Show all").press("Enter")
    page.wait_for_function("document.getElementById('f-count').textContent === '28 of 28 cells'")


def test_a_cell_has_an_address(opened: Opener) -> None:
    """D5: a link to one cell opens it."""
    page = opened("plain", fragment="#cell=scenario-1%2Fright%2Fnewest%2F2")
    page.wait_for_selector("section.cell .trail")
    assert page.locator("section.cell h3").text_content() == "scenario-1/right/newest/2"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_no_width_makes_the_page_scroll_sideways(opened: Opener, name: str, width: int) -> None:
    """D5: readable at three widths; tables scroll within themselves."""
    page = opened(name, width=width)
    open_first(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('section.cell').getBoundingClientRect().width") <= width


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [380, 1440])
def test_nothing_keeps_anybody_out(opened: Opener, scheme: str, width: int) -> None:
    """D5: axe finds no violation (WCAG 2.2 A and AA, and its best practices), light and dark, with a cell open."""
    page = opened("plain", width=width, scheme=scheme, bypass_csp=True)
    open_first(page)
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    problems = [
        f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})"
        for one in found["violations"]
    ]
    assert problems == []


def test_the_theme_can_be_chosen(opened: Opener) -> None:
    """D5: system, light, dark; the button says which."""
    page = opened("plain", scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Theme: system").click()
    assert page.evaluate(colour) != dark
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(colour) == dark


def test_prints_without_what_only_a_screen_needs(opened: Opener) -> None:
    """D5: on paper there is no navigation and no filter, and colours are light."""
    page = opened("plain", scheme="dark")
    open_first(page)
    page.emulate_media(media="print")
    assert page.locator("header.bar, #filters").evaluate_all(
        "all => all.every(e => getComputedStyle(e).display === 'none')"
    )
    assert page.locator("section.cell .trail").is_visible()


def test_is_whole_without_its_script_but_for_trajectories(browser: Browser, pages: dict[str, Path]) -> None:
    """D5: verdict, tables and scores need no script, and what does says what to type instead."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["plain"].as_uri())
    assert page.locator("#cell-table tbody tr").count() == 28
    assert "proctor show" in (page.locator("noscript").text_content() or "")
    context.close()
