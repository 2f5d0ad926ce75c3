# SPDX-License-Identifier: MIT
"""The documentation site as `make docs` builds it: links, search, nothing from elsewhere, a telephone."""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Opens each page as a file at the width of a telephone, and searches. Prints widths, requests and what was found.
# Arguments: folder of the site, the browser, pages.
BROWSER = """
import json, sys
from playwright.sync_api import sync_playwright
folder, browser, *pages = sys.argv[1:]
wide, requests, errors = {}, [], []
with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(
        executable_path=browser, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"])
    page = chromium.new_page(viewport={"width": 360, "height": 700})
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in pages:
        page.goto(f"file://{folder}/{name}", wait_until="load")
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"file://{folder}/index.html")
    page.locator(".md-search__input").click()
    page.keyboard.type("torch_scope")
    page.locator(".md-search-result__item").first.wait_for(timeout=30_000)
    found = page.locator(".md-search-result__item a").first.get_attribute("href")
    chromium.close()
print(json.dumps({"wide": wide, "requests": requests, "errors": errors, "found": found}))
"""


# A link to a file that is no page, with and without an address of the repository. Argument: the folder of hooks.py.
LINKS = """
import sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
import hooks
page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
for address in ("", "https://example.org/project/"):
    files = SimpleNamespace(get_file_from_path=lambda path: None)
    print(hooks.on_page_markdown("[the list](../CITATION.cff#L3)", page, SimpleNamespace(repo_url=address), files))
"""


class Page(HTMLParser):
    """Names of a page, and what it refers to: (attribute, target) with the tag that has it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[tuple[str, str]] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or name == "name" and tag == "a":
                self.names.add(value or "")
            elif name in ("href", "src") and value:
                self.targets.append((tag, value))


@pytest.fixture(scope="module")
def built() -> tuple[Path, str]:
    """The site, and what was said while it was made."""
    done = subprocess.run(
        [ROOT / "docs" / "site" / "build.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout
    return ROOT / "build" / "docs" / "site", done.stdout


@pytest.fixture(scope="module")
def pages(built) -> dict[str, Page]:
    """All but that for addresses that are not there, which a server shows at any address."""
    files = [file for file in built[0].rglob("*.html") if file.name != "404.html"]
    return {file.relative_to(built[0]).as_posix(): Page(file) for file in files}


def test_it_is_built_without_warnings(built) -> None:
    assert not re.search(r"warning|error", built[1].lower()), built[1]


def test_all_links_lead_somewhere(built, pages) -> None:
    folder, wrong, checked = built[0], [], 0
    for name, page in pages.items():
        for _tag, target in page.targets:
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            there = os.path.normpath((Path(name).parent / path) if path else name)
            checked += 1
            if not (folder / there).is_file():
                wrong.append(f"{name}: {target}: no such file")
            elif anchor and there in pages and anchor not in pages[there].names:
                wrong.append(f"{name}: {target}: no such section")
    assert checked > 5000 and wrong == []


def test_nothing_is_loaded_from_elsewhere(built, pages) -> None:
    loaded = [target for page in pages.values() for tag, target in page.targets if tag != "a"]
    assert len(loaded) > 500 and [target for target in loaded if re.match(r"(?!data:)[a-z]+:|//", target)] == []
    styles = "\n".join(file.read_text() for file in built[0].rglob("*.css"))
    assert styles and not re.search(r"""(url\(|@import)\s*["']?(https?:)?//""", styles)


def test_marks_are_replaced_or_gone(built, pages) -> None:
    for name in pages:
        text = (built[0] / name).read_text()
        assert not re.search(r"<!-- (test|site):|&lt;!-- (test|site):", text), name
        assert not re.search(r"<p>::: ", text), name


def test_the_header_has_the_version(built) -> None:
    header = (ROOT / "src" / "ftn_pytorch.h").read_text()
    (version,) = re.findall(r'^#define FPT_VERSION "(.+)"', header, re.MULTILINE)
    assert f"ftn_pytorch {version}" in (built[0] / "tutorial.html").read_text().partition("<main")[0]


def test_links_to_the_repository_need_one_setting(built) -> None:
    python = ROOT / "build" / "docs" / "venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", LINKS, ROOT / "docs" / "site"], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines() == ["the list", "[the list](https://example.org/project/blob/main/CITATION.cff#L3)"]


def test_links_to_pages_have_their_names(built, pages) -> None:
    """In the repository such a link shows the name of the file."""
    shown = {name: re.findall(r"<a href=[^>]*>[\w-]+\.md</a>", (built[0] / name).read_text()) for name in pages}
    assert {name: links for name, links in shown.items() if links} == {}


def test_search_finds_the_main_terms(built) -> None:
    index = json.loads((built[0] / "search" / "search_index.json").read_text())["docs"]
    for term, page in {
        "torch_in": "fortran/procedures.html",
        "save_recording": "python.html",
        "Normaliser": "python.html",
        "fpt_module_load": "c-api.html",
        "FTN_PYTORCH_ERR_SHAPE": "errors.html",
        "online_closure": "examples.html",
        "axis": "script-api.html",
    }.items():
        found = {entry["location"].partition("#")[0] for entry in index if term in entry["title"] + entry["text"]}
        assert page in found, term


def test_each_page_has_its_place(built, pages) -> None:
    """All pages of docs/ and all Fortran names are in the list at the left."""
    listed = {target for tag, target in pages["index.html"].targets if tag == "a"}
    written = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    wanted = {path.with_suffix(".html").as_posix() for path in written}
    wanted |= {name for name in pages if name.startswith("fortran/")}
    assert len(wanted) > 40 and wanted - listed == set()


def test_in_a_browser(tools, built, pages) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser, "there is no chromium: apt-get install chromium"
    command = [tools / "bin" / "python", "-c", BROWSER, built[0], browser, *sorted(pages)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert {name: width for name, width in seen["wide"].items() if width > 360} == {}
    assert [url for url in seen["requests"] if not re.match(r"file:|data:|blob:", url)] == []
    assert seen["errors"] == []
    assert "fortran/torch_scope.html" in seen["found"]
