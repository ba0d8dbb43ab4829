"""Whether the memory of the client and of the scheduler grows with a store, and what Dask's logs have in it.

`bench_cluster_memory.py`, with the Python of `.venv-scale`, migrates a store on four workers twice: with Dask's logs as
they are by default, and without them. The client is a process of its own that keeps no records, and the scheduler
records no tasks, so that nothing of a benchmark is in the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.cluster_stores import TARGET, filled
from support.dask_cluster import SETTINGS, running_cluster

WORKERS: Final = 4
#: The setting for Dask's logs, among them the messages that each connection has sent last.
LOG: Final = "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH"

_CLIENT: Final = """
import gc, json, sys
import vhlo_tools as vt
from vhlo_tools.stores import connected

def held():
    import gc
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) * 1024

address, store, target, *moments = sys.argv[1:]
with connected(address) as client:
    for number, _ in enumerate(vt.migrate(store, target, executor=client), 1):
        if str(number) in moments:
            print(json.dumps([number, held(), client.run_on_scheduler(held)]), flush=True)
"""


def measured(folder: Path, files: int, moments: list[int], settings: dict[str, str]) -> list[tuple[int, int, int]]:
    """Return, for some moments, the number of files until then and the bytes of the client and of the scheduler."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    filled(folder / "store", files)
    with running_cluster(folder, WORKERS, settings) as cluster:
        command = [sys.executable, "-c", _CLIENT, cluster.address, str(folder / "store"), TARGET, *map(str, moments)]
        environment = {**os.environ, **SETTINGS, **settings}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000, help="files of the store (default 20000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    given = parser.parse_args()
    files, found = given.files, []
    os.environ.pop(LOG, None)
    print(f"{'logs':<10} {'files':>7} {'client, MB':>11} {'scheduler, MB':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in (("default", {}), ("none", {LOG: "0"})):
            # The last batches may end together.
            moments = [files // 4, files // 2, files - 500]
            for number, client, scheduler in measured(Path(folder) / "run", files, moments, settings):
                print(f"{name:<10} {number:>7} {client / 1e6:>11.1f} {scheduler / 1e6:>14.1f}", flush=True)
                found.append({"logs": name, "files": number, "client": client, "scheduler": scheduler})
    if given.json:
        given.json.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
