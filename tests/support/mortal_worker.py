"""A worker for tests/conformance/isolated_cases.py, in a module of its own for its processes to find."""

from __future__ import annotations

import os
import signal
import time


def work(case: str) -> str:
    """Do what the case says, or return it in capitals."""
    if case == "abort":
        os.kill(os.getpid(), signal.SIGABRT)
    if case == "leave":
        os._exit(3)
    if case == "hang":
        time.sleep(600)
    if case == "raise":
        raise KeyError("what is missing")
    return case.upper()
