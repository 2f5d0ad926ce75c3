# SPDX-License-Identifier: MIT
"""torch.profiler around calls of other modules: what went between host and GPU."""

import json
import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

running = None


def start():
    global running
    torch.cuda.synchronize()
    running = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    running.start()


def stop():
    """How many copies, and of how many bytes. Those within the GPU do not count."""
    torch.cuda.synchronize()
    running.stop()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        running.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    # names are "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", ...
    kernels = [each for each in events if each.get("cat") == "kernel"]
    if not kernels:
        raise RuntimeError("the profiler saw no kernel: it cannot look at this GPU")
    copies = [each for each in events if each.get("cat") == "gpu_memcpy" and "DtoD" not in each["name"]]
    return len(copies), sum(each["args"]["bytes"] for each in copies)
