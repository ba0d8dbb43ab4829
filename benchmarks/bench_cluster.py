"""Migrations on a Dask cluster of processes on this machine, of which some die, beside one process.

`bench_cluster.py` needs the environment of the extra `distributed`, `.venv-scale`. Printed are times, rates and the
most memory of the client and of the scheduler; `--json FILE` keeps them for `simulate_cluster.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from cluster_stores import TARGET, filled, found_in, hold_memory
from dask_cluster import LocalProcesses, running_cluster
from distributed import get_task_stream
from simulate_cluster import Parts, simulate

import vhlo_tools as vt
from vhlo_tools.executors import connected

WORKERS: Final = 4
#: Files of a calibrating run, which is made on one worker.
CALIBRATING: Final = 2_000
_CORES: Final = os.cpu_count() or 1


def run_one(store: Path) -> dict[str, float]:
    """Migrate a store in this process, and return the parts of it."""
    started, cpu = time.perf_counter(), time.process_time()
    records = list(vt.migrate(store, TARGET))
    taken = time.perf_counter() - started
    return {"seconds": taken, "cpu": time.process_time() - cpu, "files": len(records)}


def run_on(
    cluster: LocalProcesses, store: Path, meanwhile: Callable[[int, Any], None] = lambda number, client: None
) -> dict[str, Any]:
    """Migrate a store on a cluster, and return the parts of it.

    Args:
        cluster: The cluster.
        store: The store.
        meanwhile: Is called with the number of files so far, and the client.
    """
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    with connected(cluster.address) as client:
        usage = client.run(_processor_time), client.run_on_scheduler(_processor_time), time.process_time()
        stream: AbstractContextManager[Any] = get_task_stream(client)
        started = time.perf_counter()
        number = 0
        with stream as tasks:
            for number, _ in enumerate(vt.migrate(store, TARGET, executor=client), 1):
                meanwhile(number, client)
            seconds = time.perf_counter() - started
        client_cpu = time.process_time() - usage[2]
        scheduler_cpu = client.run_on_scheduler(_processor_time) - usage[1]
        worker_cpu = {
            name: each - usage[0][name] for name, each in client.run(_processor_time).items() if name in usage[0]
        }
        peak = client.run_on_scheduler(_peak)
    durations = [
        each["stop"] - each["start"]
        for task in tasks.data
        for each in task["startstops"]
        if each["action"] == "compute" and "_called" in task["key"]
    ]
    return {
        "seconds": seconds,
        "files": number,
        "batches": len(durations),
        "durations": durations,
        "client_cpu": client_cpu,
        "scheduler_cpu": scheduler_cpu,
        "worker_cpu": sum(worker_cpu.values()),
        "client_peak": _peak(),
        "scheduler_peak": peak,
    }


def disturbing(cluster: LocalProcesses, number: int) -> Callable[[int, Any], None]:
    """Return what kills a worker, adds one, and lets one run out of memory in the middle of so many files."""
    held: list[Any] = []

    def disturb(done: int, client: Any) -> None:
        if done == number // 5:
            held.append(client.submit(hold_memory, workers=["small"], pure=False))
        if done == number // 3:
            cluster.kill("worker0")
        if done == number // 2:
            cluster.add("late")

    return disturb


def parts_of(run: dict[str, Any], listing: float) -> Parts:
    """Return the parts of a run on one worker, for a simulation.

    Args:
        run: The run.
        listing: The seconds that the client takes to list a file, and to add it to the journal.
    """
    batches = run["batches"]
    # The one worker is what the run waits for, so this includes what happens between two batches.
    wall = run["seconds"] / batches
    cpu = run["worker_cpu"] / batches
    files = run["files"] / batches
    return Parts(
        files_per_batch=files,
        listing=listing,
        client=max(0.0, run["client_cpu"] / batches - files * listing),
        scheduler=run["scheduler_cpu"] / batches,
        worker_cpu=cpu,
        worker_wait=max(0.0, wall - cpu),
        spread=statistics.pstdev(run["durations"]) / statistics.fmean(run["durations"]),
    )


def listing_seconds(store: Path) -> float:
    """Return the seconds that it takes to list a file of a store and to see what it is."""
    from vhlo_tools.migration.store_files import found_at  # the measured part itself, which no door exports

    settings = vt.migration.MigrationSettings((str(store),), vt.Version(TARGET))
    started = time.process_time()
    number = sum(1 for _ in found_at(settings))
    return (time.process_time() - started) / number


def disk_ratio(folder: Path) -> float:
    """Return how much longer small files take to be on disk when so many write as there are workers."""

    def write(number: int) -> None:
        for index in range(200):
            with (folder / f"{number}-{index}").open("wb") as file:
                file.write(b"x" * 1_000)
                file.flush()
                os.fsync(file.fileno())

    folder.mkdir()
    started = time.perf_counter()
    write(WORKERS)
    between = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(write, range(WORKERS)))
    return (time.perf_counter() - between) / (between - started)


def _processor_time() -> float:
    return time.process_time()


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("VmHWM")


def measure(few: int, many: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Make all runs."""
    measured: dict[str, Any] = {"calibrating": [], "four": [], "disturbed": []}

    def fresh(number: int) -> tuple[Path, dict[str, str]]:
        shutil.rmtree(folder / "store", ignore_errors=True)
        expected = filled(folder / "store", number)
        os.sync()
        return folder / "store", expected

    def kept(name: str, run: dict[str, Any], store: Path, expected: dict[str, str]) -> None:
        run["equal"] = found_in(store) == expected
        measured[name].append(run)
        print(f"  {name}: {run['files']} files in {run['seconds']:.1f} s, digests equal: {run['equal']}", flush=True)

    measured["disk"] = [disk_ratio(folder / f"disk{turn}") for turn in range(3)]
    (folder / "one").mkdir()
    with running_cluster(folder / "one", 1) as cluster:
        for _ in range(repeats):
            store, expected = fresh(CALIBRATING)
            measured.setdefault("listing", []).append(listing_seconds(store))
            kept("calibrating", run_on(cluster, store), store, expected)
    for number in (few, many):
        for name in ("four", "disturbed"):
            # A cluster of its own for each, so that the memory of its scheduler is that of one run.
            (folder / f"{name}{number}").mkdir()
            with running_cluster(folder / f"{name}{number}", WORKERS - (name == "disturbed")) as cluster:
                store, expected = fresh(number)
                if name == "disturbed":
                    cluster.add("small", "--memory-limit", "400MB")
                    cluster.await_workers(WORKERS)
                    kept(name, run_on(cluster, store, disturbing(cluster, number)), store, expected)
                    measured[name][-1]["ran_out"] = "exceeded 95% memory budget" in cluster.log("small")
                else:
                    kept(name, run_on(cluster, store), store, expected)
    store, expected = fresh(many)
    measured["alone"] = []
    kept("alone", run_one(store), store, expected)
    return measured


def show(measured: dict[str, Any]) -> None:
    """Print what was measured."""
    print(f"{'run':<12} {'files':>7} {'s':>7} {'files/s':>8} {'batches':>8} {'ms/batch':>9} {'client':>8} scheduler")
    for name in ("alone", "calibrating", "four", "disturbed"):
        for run in measured[name]:
            line = f"{name:<12} {run['files']:>7} {run['seconds']:>7.1f} {run['files'] / run['seconds']:>8.0f}"
            if "durations" in run:
                line += f" {run['batches']:>8} {statistics.median(run['durations']) * 1e3:>9.1f}"
                line += f" {run['client_peak'] / 1e6:>5.0f} MB {run['scheduler_peak'] / 1e6:>6.0f} MB"
            print(line)


def calibrated(measured: dict[str, Any]) -> Parts:
    """Return the parts that the runs on one worker give."""
    listing = statistics.median(measured["listing"])
    # Only the first run starts workers: it imports what the others find imported.
    first, *others = (parts_of(run, listing) for run in measured["calibrating"])
    parts = Parts.median(others)
    startup = (first.worker_cpu - parts.worker_cpu) * measured["calibrating"][0]["batches"]
    return replace(parts, startup=max(0.0, startup))


def confirm(measured: dict[str, Any]) -> bool:
    """Print what a simulation of the run on four workers says beside it; return whether they are within 20 %."""
    parts = calibrated(measured)
    print(json.dumps(parts.as_json()))
    fine = True
    for run in measured["four"]:
        disk = statistics.median(measured["disk"])
        said = simulate(parts, files=run["files"], workers=WORKERS, cores=_CORES, disk=disk).seconds
        ratio = said / run["seconds"]
        fine &= abs(ratio - 1) <= 0.2
        print(
            f"{run['files']} files on {WORKERS} workers: simulated {said:.1f} s, measured {run['seconds']:.1f} s, "
            f"ratio {ratio:.2f}"
        )
    return fine


def main() -> int:
    """Measure, print, and compare with the simulation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--few", type=int, default=5_000, help="files of the smaller store (default 5000)")
    parser.add_argument("--files", type=int, default=20_000, help="files of the larger store (default 20000)")
    parser.add_argument("--repeats", type=int, default=3, help="calibrating runs on one worker (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--parts", type=Path, metavar="FILE", help="write the parts, for simulate_cluster.py")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE", help="measure nothing: read what was")
    parser.add_argument("--confirm", action="store_true", help="compare with the simulation: exit code 1 beyond 20 %%")
    arguments = parser.parse_args()
    if arguments.given:
        measured = json.loads(arguments.given.read_text())
    else:
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(arguments.few, arguments.files, arguments.repeats, Path(folder))
    if arguments.json:
        arguments.json.write_text(json.dumps(measured))
    if arguments.parts:
        arguments.parts.write_text(json.dumps(calibrated(measured).as_json()))
    show(measured)
    equal = all(run["equal"] for runs in measured.values() for run in runs if isinstance(run, dict))
    confirmed = confirm(measured) if arguments.confirm else True
    return 0 if equal and confirmed else 1


if __name__ == "__main__":
    sys.exit(main())
