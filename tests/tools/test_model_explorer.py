# SPDX-License-Identifier: MIT
"""Files of ``python -m ftn_pytorch explore`` in Model Explorer, seen in a browser. Pictures go into build/tools."""

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
WRITE = """
import nets, torch
example = torch.zeros(1, 2, 8, 8)
net = nets.net.eval()
torch.jit.save(torch.jit.script(net), "net.pt")
torch.onnx.export(net, (example,), "net.onnx", dynamo=True, verbose=False)
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
    run(sys.executable, "-W", "ignore", "-c", WRITE, folder=folder)
    return folder


@pytest.fixture
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no chromium: apt-get install chromium")
    return found


@pytest.mark.parametrize(
    "source, file, fewest_nodes, fewest_layers",
    [
        (("net.pt",), "net.json", 15, 5),
        (("net.onnx",), "net.json", 15, 4),
        (("nets.py:net", "--input", "1x2x8x8"), "nets.pt2", 10, 4),
    ],
)
def test_in_a_browser(tools, folder, browser, source, file, fewest_nodes, fewest_layers) -> None:
    run(sys.executable, "-W", "ignore", "-m", "ftn_pytorch", "explore", *source, folder=folder)
    pictures = ROOT / "build" / "tools"
    pictures.mkdir(parents=True, exist_ok=True)
    picture = pictures / f"model_explorer_{source[0].partition('.')[2].partition(':')[0]}.png"
    log = folder / "server.log"
    command = [tools / "bin" / "python", "-m", "model_explorer", file, "--no_open_in_browser", "--skip_health_check"]
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
    assert nodes >= fewest_nodes and layers >= fewest_layers, text
    assert picture.stat().st_size > 20_000
