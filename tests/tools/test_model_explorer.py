# SPDX-License-Identifier: MIT
"""What ``python -m ftn_pytorch export`` writes, in Model Explorer, seen in a browser. Pictures go into build/tools."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NETS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.convolution(x))

net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 1), Block(), Block())
"""
# Shows the page, opens all layers, and prints the text of the page. Arguments: address, file of the picture.
BROWSER = """
import sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=sys.argv[3], args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"])
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(sys.argv[1], wait_until="domcontentloaded", timeout=60_000)
    page.get_by_text("op node count").wait_for(timeout=60_000)
    page.get_by_text("unfold_more_double").click()
    page.wait_for_timeout(5_000)
    page.screenshot(path=sys.argv[2])
    print(page.inner_text("body"))
    browser.close()
"""


def run(*command: object, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'python'}:{folder}"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nets")
    (folder / "nets.py").write_text(NETS)
    return folder


@pytest.fixture
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no chromium: apt-get install chromium")
    return found


def test_in_a_browser(tools, folder, browser) -> None:
    words = ("nets.py:net", "--input", "1x2x8x8", "--to", "pt2", "--output", "nets.pt2")
    run(sys.executable, "-W", "ignore", "-m", "ftn_pytorch", "export", *words, folder=folder)
    pictures = ROOT / "build" / "tools"
    pictures.mkdir(parents=True, exist_ok=True)
    picture = pictures / "model_explorer.png"
    log = folder / "server.log"
    options = ("--no_open_in_browser", "--skip_health_check")
    command = [tools / "bin" / "python", "-m", "model_explorer", "nets.pt2", *options]
    with log.open("w") as stream, subprocess.Popen(command, cwd=folder, stdout=stream, stderr=stream) as server:
        try:
            end, address = time.monotonic() + 60, None
            while address is None and time.monotonic() < end:
                time.sleep(0.5)
                address = re.search(r"http://localhost:\S+", log.read_text())
            assert address, log.read_text()
            text = run(tools / "bin" / "python", "-c", BROWSER, address[0], picture, browser, folder=folder)
        finally:
            server.kill()
    nodes, layers = (int(re.search(rf"{name} count\s+(\d+)", text)[1]) for name in ("op node", "layer"))
    assert nodes >= 10 and layers >= 4, text
    assert picture.stat().st_size > 20_000
