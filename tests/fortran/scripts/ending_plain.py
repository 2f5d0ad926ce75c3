# SPDX-License-Identifier: MIT
"""What is left to do when a program ends that has nothing of torch."""

import atexit
import sys
import threading

atexit.register(lambda: print("exit function", 3.0))


def prints():
    sys.stdout.write("without newline ")


def fails():
    raise ValueError("on purpose")


def fails_in_a_thread():
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
