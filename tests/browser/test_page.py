"""The page for teams in a real browser, opened from a file: clicks, filters, sizes, schemes, and no surprise.

`make test-browser` runs these; they need playwright and a Chromium, and fail without.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.report.test_formats import FIX, UNSAFE, diagnostic, report
from torchlint.engine.result import FileResult
from torchlint.report.data import Report, RuleInfo
from torchlint.report.html import render

EVIL = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium named by CHROMIUM, one that is installed, or else playwright's own."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """A page that is open, with all that it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Page:
        """Return the page that shows the file."""
        self.page.goto(path.as_uri() + fragment)
        return self.page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A fresh tab that must have nothing to complain about and load nothing but the file."""
    page = browser.new_page(viewport=DESKTOP)
    visit = Visit(page)
    yield visit
    page.close()
    assert visit.complaints == []
    assert all(url.startswith("file:") for url in visit.requests)
    assert len({url.partition("#")[0] for url in visit.requests}) == 1


def many(count: int) -> Report:
    """Return a report with this many findings of four rules in files of ten."""
    results = []
    for number in range(count // 10):
        path = f"package/module_{number:04}.py"
        row = report(diagnostic(path)).results[0]
        found = tuple(
            diagnostic(path, fix=(FIX, UNSAFE, None)[index % 3], message=f"Finding {index} of `module`.")._replace(
                code=f"TL20{index % 4}", name=f"rule-{index % 4}"
            )
            for index in range(10)
        )
        results.append(FileResult(path, row.status, found, excerpts=row.excerpts))
    rules = {f"TL20{index}": RuleInfo(f"TL20{index}", f"rule-{index}", "A summary", HELP) for index in range(4)}
    return Report(tuple(results), "1.2.3", "/somewhere/project", rules, {"2.1": count // 10})


HELP = "A sentence with `code`.\n\n## Why it costs\n\nBecause **so**.\n\n```python\nx = 1\n```\n"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 5,000 findings."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(many(5_000)), encoding="ascii")
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The page of a few findings, with names that try to be markup."""
    found = (
        diagnostic("<script>alert(1)<.py", message=EVIL),
        diagnostic("<script>alert(1)<.py", fix=UNSAFE),
        diagnostic("<script>alert(1)<.py", fix=None, message="Nothing to do " + "word" * 60),
    )
    path = tmp_path / "a b#1.html"
    path.write_text(render(report(*found, line=f"x = '{EVIL}'  # a long line " + "y" * 300)), encoding="ascii")
    return path


def findings(page: Page) -> int:
    """Return how many findings are drawn."""
    return page.locator(".finding").count()


def test_five_thousand_findings_stay_usable(visit: Visit, large: Path) -> None:
    page = visit.open(large)
    expect(page.locator("#count")).to_have_text("5,000 of 5,000 findings, in 500 files")
    assert page.locator(".group").count() == 4
    assert findings(page) == 0
    page.locator(".group > summary").first.click()
    expect(page.locator(".finding")).to_have_count(50)
    page.locator(".more:visible").click()
    expect(page.locator(".finding")).to_have_count(100)
    page.locator("#query").fill("module_0123 finding")
    expect(page.locator("#count")).to_have_text("10 of 5,000 findings, in 1 file")
    expect(page.locator(".finding")).to_have_count(10)
    elapsed = page.evaluate(
        """() => { const start = performance.now(); const query = document.getElementById("query");
        query.value = "module"; query.dispatchEvent(new Event("input", {bubbles: true}));
        return new Promise((done) => setTimeout(() => done(performance.now() - start), 81)); }"""
    )
    assert elapsed < 1_500, "a search over 5,000 findings answers at once"
    page.locator("#group").select_option("file")
    expect(page.locator(".group")).to_have_count(500)


def test_filters_combine_clear_and_live_in_the_address(visit: Visit, large: Path) -> None:
    page = visit.open(large)
    page.locator("#rule").select_option("TL201")
    page.locator("#fix").select_option("unsafe")
    expect(page.locator("#count")).to_have_text("500 of 5,000 findings, in 500 files")
    assert "rule=TL201" in page.url
    assert "fix=unsafe" in page.url
    page.reload()
    expect(page.locator("#count")).to_have_text("500 of 5,000 findings, in 500 files")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#count")).to_have_text("5,000 of 5,000 findings, in 500 files")
    page.locator("td a", has_text="TL202").click()
    expect(page.locator("#rule")).to_have_value("TL202")
    page.keyboard.press("/")
    page.keyboard.type("no such thing")
    expect(page.locator(".empty")).to_be_visible()


def test_code_fix_and_help_of_a_finding(visit: Visit, large: Path) -> None:
    page = visit.open(large, "#q=module_0000&rule=TL200")
    first = page.locator(".finding").first
    expect(first.locator("h3")).to_have_text("package/module_0000.py:1:5")
    expect(first.locator("mark")).to_have_text("torch.zeros(3).cuda()")
    expect(first.locator(".removed")).to_contain_text("- x = torch.zeros(3).cuda()")
    expect(first.locator(".added")).to_contain_text('+ x = torch.zeros(, device="cuda")')
    page.locator(".help > summary").first.click()
    expect(page.locator(".help h4").first).to_have_text("Why it costs")
    expect(page.locator(".help pre").first).to_have_text("x = 1")


def test_what_looks_like_markup_is_text(visit: Visit, small: Path) -> None:
    page = visit.open(small)
    expect(page.locator(".finding")).to_have_count(3)
    expect(page.locator(".finding").first).to_contain_text(EVIL)
    expect(page.locator(".finding h3").first).to_contain_text("<script>alert(1)<.py:1:5")
    page.locator("#group").select_option("file")
    expect(page.locator(".group > summary")).to_contain_text("<script>alert(1)<.py")
    assert page.evaluate("window.owned === undefined")
    assert page.locator("img").count() == 0


def test_the_policy_lets_nothing_else_run(browser: Browser, small: Path) -> None:
    visit = Visit(browser.new_page())
    page = visit.open(small)
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'owned = 1'}))")
    assert page.evaluate("window.owned === undefined")
    refused = page.evaluate("fetch('file:///').then(() => false, () => true)")
    assert refused
    assert len(visit.complaints) >= 2
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_it_fits_and_can_be_read(visit: Visit, small: Path, size: dict[str, int], scheme: str) -> None:
    page = visit.page
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    visit.open(small)
    assert page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth"), "the page scrolls sideways"
    dark = page.evaluate(LUMINANCE + "luminance(getComputedStyle(document.body).backgroundColor) < 0.2")
    assert dark is (scheme == "dark")
    contrasts = page.evaluate(LUMINANCE + CONTRASTS)
    assert len(contrasts) > 30
    assert [words for contrast, words in contrasts if contrast < 4.5] == []


def test_the_theme_can_be_chosen(visit: Visit, small: Path) -> None:
    page = visit.open(small)
    button = page.locator("#theme")
    colours = []
    for name in ("light", "dark", "as the system"):
        button.click()
        expect(button).to_have_text(f"Theme: {name}")
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] == colours[2] != colours[1]


LUMINANCE = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = (text) => {
  const [r, g, b] = channels(text).map((value) => linear(value / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
"""
CONTRASTS = """
const behind = (node) => {
  const colour = getComputedStyle(node).backgroundColor;
  return (channels(colour)[3] ?? 1) === 0 && node.parentElement ? behind(node.parentElement) : colour;
};
const contrast = (node) => {
  const [a, b] = [getComputedStyle(node).color, behind(node)].map(luminance).sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
};
const speaks = (node) => [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
[...document.querySelectorAll("body *")]
  .filter((node) => node.offsetParent && speaks(node))
  .map((node) => [contrast(node), `${node.tagName}.${node.className}: ${node.textContent.slice(0, 30)}`]);
"""
