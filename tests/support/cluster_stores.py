"""Stores of small artifacts for work on a cluster, whose digests after a migration are known."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import vhlo_tools as vt
from support.corpus import EXAMPLES, FEATURES

FROM, TARGET = "1.9.0", "1.1.0"
#: The programs of stores, and of how many files: one of them cannot be at the target.
PROGRAMS = ((EXAMPLES / "saxpy.mlir", 40), (EXAMPLES / "transformer_step.mlir", 1), (FEATURES / "tan.mlir", 9))


def filled(store: Path, number: int) -> dict[str, str]:
    """Fill a store, and return the SHA-256 that each file has after its migration."""
    versions = []
    for source, times in PROGRAMS:
        artifact = vt.serialize(source, FROM)
        refused = any(each.level == "error" for each in vt.check(artifact, TARGET))
        versions += [(bytes(artifact), bytes(artifact if refused else vt.retarget(artifact, TARGET)))] * times
    digests = {}
    for index in range(number):
        before, after = versions[index % len(versions)]
        path = store / f"{index // 100:03}" / f"{index:05}.mlirbc"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before)
        digests[str(path)] = hashlib.sha256(after).hexdigest()
    return digests


def found_in(store: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a store, hidden ones too."""
    files = (each for each in store.rglob("*") if each.is_file())
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def hold_memory() -> int:
    """Take all the memory that there is, slowly enough for a nanny to see it."""
    held = []
    for _ in range(40):
        held.append(os.urandom(50_000_000))
        time.sleep(0.1)
    return len(held)
