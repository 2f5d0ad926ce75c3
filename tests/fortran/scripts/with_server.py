# SPDX-License-Identifier: MIT
"""Run a program beside a server that dies and comes back: python with_server.py SERVER... -- PROGRAM...

{port} in both commands becomes a free port. The server is killed when the program prints "step 100", and started again
when it prints "step 200". The exit code is that of the program.
"""

import os
import signal
import socket
import subprocess
import sys
import time

split = sys.argv.index("--")
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
server, program = (
    [word.replace("{port}", str(port)) for word in words] for words in (sys.argv[1:split], sys.argv[split + 1 :])
)


def start():
    return subprocess.Popen(server, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(process):
    for _ in range(1200):
        if process.poll() is not None:
            sys.exit(f"{server[0]} has ended")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nobody listens at port {port}")


running = start()
try:
    wait_for(running)
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as ranks:
        for line in ranks.stdout:
            print(line, end="", flush=True)
            if line.split() == ["step", "100"]:
                kill(running)
                print("the server is killed", flush=True)
            elif line.split() == ["step", "200"]:
                running = start()
                print("the server is started again", flush=True)
finally:
    if running.poll() is None:
        kill(running)
sys.exit(ranks.returncode)
