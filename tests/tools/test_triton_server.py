# SPDX-License-Identifier: MIT
"""A real Triton server: what it answers, and that no call is lost when it is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mpi_environment import MPI_ENVIRONMENT

import ftn_pytorch
from ftn_pytorch import _embed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = ROOT / "tests" / "fortran" / "scripts"
X = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")
Y = np.tanh(X).sum(1, keepdims=True)
PORT = 18301

RANK = """
import sys
import numpy as np
from ftn_pytorch import _embed
forward = _embed.bind(_embed.load(1, sys.argv[1], {}, {}), "ftn_pytorch_forward", 0)[0]
x = np.random.default_rng(int(sys.argv[2])).standard_normal((8, 3)).astype("float32")
for _ in range(200):
    assert np.allclose(forward(x), np.tanh(x).sum(1, keepdims=True), atol=1e-6)
"""


class Server:
    """The processes of a server, which end together."""

    def __init__(self, *command, port):
        self._command, self._port = list(map(str, command)), port
        self._process = None

    def start(self):
        self._process = subprocess.Popen(self._command, start_new_session=True)

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self):
        for _ in range(600):
            assert self._process.poll() is None
            try:
                return _embed.load(1, f"triton+grpc://127.0.0.1:{self._port}/net?timeout=5", {}, {})
            except Exception:
                time.sleep(0.1)
        raise TimeoutError


@pytest.fixture
def server(tools):
    made = Server(tools / "triton" / "bin" / "python", HERE / "triton_server.py", PORT, port=PORT)
    made.start()
    yield made
    made.kill()


def test_numbers_batches_and_a_kill(server, tmp_path):
    torch = pytest.importorskip("torch")
    runner = server.wait()
    forward = _embed.bind(runner, "ftn_pytorch_forward", 0)[0]
    np.testing.assert_allclose(forward(X), Y, atol=1e-6, err_msg="40 samples, of which the model takes 16 at once")

    address = f"triton+grpc://127.0.0.1:{PORT}/net?timeout=5"
    environment = {**os.environ, "PYTHONPATH": str(Path(ftn_pytorch.__file__).parents[1])}
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, address, str(number)], env=environment) for number in range(4)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0] * 4, "several ranks share the server"

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.tanh(x).sum(1, keepdim=True) + 100

    torch.jit.script(Net()).save(str(tmp_path / "net.pt"))
    runner = _embed.load(1, address, {"fallback": str(tmp_path / "net.pt")}, {})
    forward = _embed.bind(runner, "ftn_pytorch_forward", 0)[0]

    def is_served():
        found = np.asarray(forward(torch.from_numpy(X)))
        served = bool(found[0, 0] < 50)
        np.testing.assert_allclose(found, Y if served else Y + 100, atol=1e-4)
        return served

    assert is_served()
    server.kill()
    with pytest.warns(match="net.pt answers in its place"):
        assert not is_served()
    server.start()
    deadline = time.monotonic() + 100
    while not is_served():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ranks_with_the_server_of_the_page_which_is_killed(tools, build_dir, tmp_path):
    """The server is the one that docs/servers.md shows."""
    program = build_dir / "tests" / "fortran" / "test_served_ranks"
    if not program.exists():
        pytest.skip("there is no MPI")
    page = (ROOT / "docs" / "servers.md").read_text()
    (tmp_path / "server.py").write_text(re.search(r"^```python\n(.+?)^```", page, re.MULTILINE | re.DOTALL)[1])
    subprocess.run([sys.executable, SCRIPTS / "make_served.py", tmp_path], check=True)
    done = subprocess.run(
        [
            sys.executable, SCRIPTS / "with_server.py", tools / "triton" / "bin" / "python", tmp_path / "server.py",
            "{port}", tmp_path / "heating.npz", "--", "mpiexec", "-n", "4", program,
            "triton+grpc://127.0.0.1:{port}/heating", tmp_path / "heating.pt", "3000",
        ],
        env={**os.environ, **MPI_ENVIRONMENT},
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest difference from a run without a server" in done.stdout
    counts = [line for line in done.stderr.splitlines() if "of 3000 calls were answered by" in line]
    assert len(counts) == 4 and not any(" 3000 of 3000 " in line for line in counts), "each rank was served again"
