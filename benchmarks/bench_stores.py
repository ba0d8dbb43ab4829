"""Checks and comparisons of whole stores on a Dask cluster on this machine: time, and the memory of the client.

`bench_stores.py check --files 5000 20000` needs the environment of the extra `distributed`, `.venv-scale`. Each run has
a scheduler, four workers and a client of its own, for the peak of a process's memory stays.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.cluster_stores import TARGET, filled
from support.dask_cluster import running_cluster

import vhlo_tools as vt
from vhlo_tools.stores import connected

WORKERS: Final = 4


def results(what: str, store: str, copy: str, client: Any) -> Iterator[object]:
    """Yield what is said of each file."""
    if what == "check":
        return vt.check_store(store, TARGET, executor=client)
    return vt.verify_stores(store, copy, executor=client)


def run_client(what: str, address: str, store: str, copy: str) -> None:
    """Do the work as a client, and print what it took."""
    with connected(address) as client:
        started, cpu, number, first = time.perf_counter(), time.process_time(), 0, 0.0
        for _ in results(what, store, copy, client):
            number += 1
            first = first or time.perf_counter() - started
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        peaks = [each / 1024 for each in (_peak(), client.run_on_scheduler(_peak))]
    print(
        f"{what} {number} files: {seconds:.1f} s, the first after {first:.1f} s; client {1e3 * cpu / number:.2f} ms of "
        f"processor for each, at most {peaks[0]:.0f} MB; scheduler at most {peaks[1]:.0f} MB",
        flush=True,
    )


def _peak() -> int:
    """Return the most memory that this process has had, in KiB; unlike that of `getrusage`, not that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["check", "verify"])
    parser.add_argument("--files", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        run_client(options.what, *options.client)
        return
    top = Path(tempfile.mkdtemp(prefix="bench-stores-"))
    try:
        for number in options.files:
            folder = top / str(number)
            filled(folder / "store", number)
            if options.what == "verify":
                shutil.copytree(folder / "store", folder / "copy")
            (folder / "cluster").mkdir()
            with running_cluster(folder / "cluster", WORKERS) as cluster:
                given = [cluster.address, str(folder / "store"), str(folder / "copy")]
                environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
                subprocess.run(
                    [sys.executable, __file__, options.what, "--client", *given], env=environment, check=True
                )
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    main()
