"""Migrations on a Dask cluster of processes on this machine, of which some die, beside one process and a simulation.

`bench_cluster.py` needs the environment of the extra `distributed`, `.venv-scale`. Printed are times, rates and the
most memory of the client and of the scheduler; `--json FILE` keeps them, and `--parts FILE` what one worker takes, for
`simulate_cluster.py`. `--confirm` makes pairs of runs by turns, one on one worker and one on four, and simulates each
run on four with the parts that its pair has measured on one worker. Other work on the machine is measured during the
run, and simulated with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

# Helpers that tests use too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from distributed import get_task_stream
from machine_parts import disk_factor, processor_factor
from process_accounts import Account, named_accounts, observed_load
from runnable_groups import is_grouped
from simulate_cluster import Machine, Parts, simulate
from support.cluster_stores import TARGET, filled, found_in, hold_memory
from support.dask_cluster import SETTINGS, LocalProcesses, running_cluster
from support.store_servers import BUCKET, SERVERS, started

import vhlo_tools as vt
from vhlo_tools.stores import Migration, connected

WORKERS: Final = 4
#: Files of a calibrating run, which is made on one worker, and of the run before it, in which the worker imports.
CALIBRATING, COLD = 2_000, 320
#: Objects of a run in a store.
STORED: Final = 640
_CORES: Final = os.cpu_count() or 1
# Workers say what their threads took.
SETTINGS["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)


def run_one(store: Path) -> dict[str, float]:
    """Migrate a store in this process, and return the parts of it."""
    started, cpu = time.perf_counter(), time.process_time()
    records = list(vt.migrate(store, TARGET))
    taken = time.perf_counter() - started
    return {"seconds": taken, "cpu": time.process_time() - cpu, "files": len(records)}


def run_on(
    cluster: LocalProcesses, store: Path | str, meanwhile: Callable[[int, Any], None] = lambda number, client: None
) -> dict[str, Any]:
    """Migrate a store on a cluster, and return the parts of it.

    Args:
        cluster: The cluster.
        store: The store.
        meanwhile: Is called with the number of files so far, and the client.
    """
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far

    def accounts(client: Any) -> tuple[dict[str, Any], Any, dict[str, Account]]:
        return client.run(named_accounts), client.run_on_scheduler(named_accounts), named_accounts()

    with connected(cluster.address) as client:
        before = accounts(client)
        number = 0
        with get_task_stream(client) as tasks, put_accounts() as puts, observed_load(cluster.leaders) as load:
            started = time.perf_counter()
            for number, _ in enumerate(vt.migrate(store, TARGET, executor=client), 1):
                meanwhile(number, client)
            seconds = time.perf_counter() - started
        after = accounts(client)
        peak = client.run_on_scheduler(_peak)
    durations = [
        each["stop"] - each["start"]
        for task in tasks.data
        for each in task["startstops"]
        if each["action"] == "compute" and "_called" in task["key"]
    ]
    worker, worker_loop = Account(), Account()
    # Workers that have died or come meanwhile are not accounted for.
    for name in before[0].keys() & after[0].keys():
        # The second does the requests of the first to a store, which waits for it.
        working, other = _parted(before[0][name], after[0][name], "Dask-Default-Threads", "fsspecIO")
        worker, worker_loop = worker + working, worker_loop + other
    client_main, client_loop = _parted(before[2], after[2], "MainThread")
    scheduler, _ = _parted(before[1], after[1], "")
    return {
        "seconds": seconds,
        "files": number,
        "batches": len(durations),
        "durations": durations,
        "client": asdict(client_main),
        "client_loop": asdict(client_loop),
        "puts": puts,
        "scheduler": asdict(scheduler),
        "worker": asdict(worker),
        "worker_loop": asdict(worker_loop),
        "load": asdict(load),
        "foreign": load.foreign,
        "client_peak": _peak(),
        "scheduler_peak": peak,
    }


def _parted(before: dict[str, Account], after: dict[str, Account], *names: str) -> tuple[Account, Account]:
    """Return what the threads took whose names contain one of some words, and what the others did."""
    parts = [Account(), Account()]
    for each, account in after.items():
        parts[not any(name in each for name in names)] += account - before.get(each, Account())
    return parts[0], parts[1]


@contextmanager
def put_accounts() -> Iterator[dict[str, float]]:
    """Yield what the client takes to put results in place: seconds in all, the number of batches, and the account."""
    found = {"seconds": 0.0, "number": 0, **asdict(Account())}
    put = Migration._put  # the measured part itself

    def accounted(migration: Migration, batch: list[Any]) -> Any:
        before, began = Account.of_this_thread(), time.perf_counter()
        records = put(migration, batch)
        found["seconds"] += time.perf_counter() - began
        found["number"] += 1
        for name, value in asdict(Account.of_this_thread() - before).items():
            found[name] += value
        return records

    Migration._put = accounted  # type: ignore[assignment,method-assign]
    try:
        yield found
    finally:
        Migration._put = put  # type: ignore[method-assign]


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
    batches, puts, worker = run["batches"], run["puts"], run["worker"]
    files = run["files"] / batches
    waited = sum(run["durations"]) - worker["cpu"] - worker["queued"]
    return Parts(
        files_per_batch=files,
        listing=listing,
        client=max(0.0, run["client"]["cpu"] / batches - files * listing),
        client_wait=max(0.0, puts["seconds"] - puts["cpu"] - puts["queued"]) / batches,
        client_loop=run["client_loop"]["cpu"] / batches,
        scheduler=run["scheduler"]["cpu"] / batches,
        worker_cpu=worker["cpu"] / batches,
        worker_wait=max(0.0, waited) / batches,
        worker_loop=run["worker_loop"]["cpu"] / batches,
        spread=statistics.pstdev(run["durations"]) / statistics.fmean(run["durations"]),
    )


def listing_seconds(store: Path | str) -> float:
    """Return the seconds that it takes to list a file of a store and to see what it is."""
    from vhlo_tools.stores import MigrationSettings
    from vhlo_tools.stores.migration_files import found_at  # the measured part itself, which no door exports

    settings = MigrationSettings((str(store),), vt.Version(TARGET))
    started = time.process_time()
    number = sum(1 for _ in found_at(settings))
    return (time.process_time() - started) / number


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise LookupError("VmHWM")


class Measurements:
    """What was measured.

    Args:
        folder: A folder for stores, and for the files of clusters.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clusters = 0
        self.found: dict[str, Any] = {}

    def pair(self, files: int) -> None:
        """Measure the parts on one worker, then a run on four."""
        with self._cluster(1) as cluster:
            cold = self._run("cold", COLD, lambda store: run_on(cluster, store))
            one = self._run("one worker", CALIBRATING, lambda store: run_on(cluster, store))
        four = self.four(files)
        machine = {"disk": disk_factor(self._folder, WORKERS), "processor": processor_factor(WORKERS)}
        pair = {"cold": cold, "one": one, "four": four, **machine}
        self.found.setdefault("pairs", []).append(pair)

    def stored(self) -> dict[str, Any]:
        """Measure a run on one worker in a store: moto's S3 server, which does not keep up with more."""
        (folder := self._folder / "moto").mkdir()
        with started("s3", folder) as port:
            settings = SERVERS["s3"].settings(port)
            os.environ.update(settings)
            with self._cluster(1, settings) as cluster:
                run_on(cluster, _uploaded(self._folder / "cold", COLD))
                store = _uploaded(self._folder / "warm", STORED)
                found = {**run_on(cluster, store), "listing": listing_seconds(store)}
        self.found["stored"] = found
        return found

    def four(self, files: int) -> dict[str, Any]:
        """Measure a run on four workers."""
        # A cluster of its own for each, so that the memory of its scheduler is that of one run.
        with self._cluster(WORKERS) as cluster:
            return self._run("four workers", files, lambda store: run_on(cluster, store))

    def disturbed(self, files: int) -> dict[str, Any]:
        """Measure a run on four workers of which one runs out of memory, one dies, and to which one is added."""
        with self._cluster(WORKERS - 1) as cluster:
            cluster.add("small", "--memory-limit", "400MB")
            cluster.await_workers(WORKERS)
            run = self._run("disturbed", files, lambda store: run_on(cluster, store, disturbing(cluster, files)))
            run["ran_out"] = "exceeded 95% memory budget" in cluster.log("small")
        return run

    def alone(self, files: int) -> dict[str, Any]:
        """Measure a run in this process."""
        return self._run("one process", files, run_one)

    @contextmanager
    def _cluster(self, workers: int, settings: dict[str, str] | None = None) -> Iterator[LocalProcesses]:
        self._clusters += 1
        (folder := self._folder / str(self._clusters)).mkdir()
        with running_cluster(folder, workers, settings) as cluster:
            yield cluster

    def _run(self, name: str, files: int, run: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        store = self._folder / "store"
        shutil.rmtree(store, ignore_errors=True)
        expected = filled(store, files)
        os.sync()
        listing = listing_seconds(store)
        found = {**run(store), "listing": listing, "equal": found_in(store) == expected}
        self.found.setdefault("runs", []).append({"name": name, **found})
        print(
            f"  {name}: {found['files']} files in {found['seconds']:.1f} s, digests equal: {found['equal']}", flush=True
        )
        return found


def _uploaded(folder: Path, files: int) -> str:
    """Write a store behind a URL, and return it."""
    import boto3

    client = boto3.client("s3")
    for path in map(Path, filled(folder, files)):
        client.put_object(Bucket=BUCKET, Key=f"{folder.name}/{path.name}", Body=path.read_bytes())
    client.close()
    return f"s3://{BUCKET}/{folder.name}"


def show(runs: list[dict[str, Any]]) -> None:
    """Print what was measured."""
    titles = ("files", "s", "files/s", "batches", "ms/batch", "foreign", "client MB", "scheduler MB")
    print(f"{'run':<12} " + " ".join(f"{each:>12}" for each in titles))
    for run in runs:
        cells = [f"{run['files']}", f"{run['seconds']:.1f}", f"{run['files'] / run['seconds']:.0f}"]
        if "durations" in run:
            cells += [f"{run['batches']}", f"{statistics.median(run['durations']) * 1e3:.0f}", f"{run['foreign']:.1f}"]
            cells += [f"{run['client_peak'] / 1e6:.0f}", f"{run['scheduler_peak'] / 1e6:.0f}"]
        print(f"{run['name']:<12} " + " ".join(f"{each:>12}" for each in cells))


def calibrated(pair: dict[str, Any]) -> Parts:
    """Return the parts that the runs of a pair on one worker give."""
    one, cold = pair["one"], pair["cold"]
    parts = parts_of(one, one["listing"])
    # Only the first run starts a worker: it imports what the other finds imported.
    usual = (parts.worker_cpu + parts.worker_loop) * cold["batches"]
    return replace(parts, startup=max(0.0, cold["worker"]["cpu"] + cold["worker_loop"]["cpu"] - usual))


def compared(pairs: list[dict[str, Any]]) -> Iterator[dict[str, float]]:
    """Yield what a simulation of each run on four workers says, beside what was measured."""
    for pair in pairs:
        run = pair["four"]
        machine = Machine(_CORES, run["foreign"], pair["disk"], pair["processor"], is_grouped())
        said = simulate(calibrated(pair), files=run["files"], workers=WORKERS, machine=machine)
        found = {"files": run["files"], "foreign": run["foreign"], "disk": pair["disk"], "processor": pair["processor"]}
        yield {**found, "simulated": said.seconds, "measured": run["seconds"]}


def confirm(pairs: list[dict[str, Any]]) -> bool:
    """Print simulations beside what was measured; return whether their median is within 20 % of it."""
    print(f"{'files':>7} {'foreign':>8} {'disk':>6} {'processor':>10} {'simulated, s':>13} {'measured, s':>12} ratio")
    ratios = []
    for each in compared(pairs):
        ratios.append(each["simulated"] / each["measured"])
        print(
            f"{each['files']:>7} {each['foreign']:>8.2f} {each['disk']:>6.2f} {each['processor']:>10.2f} "
            f"{each['simulated']:>13.1f} "
            f"{each['measured']:>12.1f} {ratios[-1]:.2f}"
        )
    print(f"median {statistics.median(ratios):.2f}")
    return bool(abs(statistics.median(ratios) - 1) <= 0.2)


def _in_own_session() -> int:
    """Run this command again in a session of its own, which has its share of the cores as each process of Dask has."""
    with subprocess.Popen([sys.executable, *sys.argv], start_new_session=True) as own:
        try:
            return own.wait()
        except KeyboardInterrupt:
            os.killpg(own.pid, signal.SIGINT)
            return own.wait()


def main() -> int:
    """Measure, print, and compare with the simulation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--few", type=int, default=5_000, help="files of the smaller store (default 5000)")
    parser.add_argument("--files", type=int, default=20_000, help="files of the larger store (default 20000)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs on one worker and on four (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--parts", type=Path, metavar="FILE", help="write the parts, for simulate_cluster.py")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE", help="measure nothing: read what was")
    parser.add_argument(
        "--confirm", action="store_true", help="only the pairs, and the simulation beside: exit code 1 beyond 20 %%"
    )
    arguments = parser.parse_args()
    if arguments.given:
        measured = json.loads(arguments.given.read_text())
    elif os.getsid(0) != os.getpid():
        return _in_own_session()
    else:
        with tempfile.TemporaryDirectory() as folder:
            measurements = Measurements(Path(folder))
            for _ in range(arguments.pairs):
                measurements.pair(arguments.few)
            if not arguments.confirm:
                measurements.four(arguments.files)
                for number in (arguments.few, arguments.files):
                    measurements.disturbed(number)
                measurements.alone(arguments.files)
                measurements.stored()
        measured = measurements.found
    if arguments.json:
        arguments.json.write_text(json.dumps(measured))
    parts = Parts.median(map(calibrated, measured["pairs"]))
    if arguments.parts:
        arguments.parts.write_text(json.dumps(parts.as_json()))
    show(measured["runs"])
    print("small files, on one worker:", json.dumps(parts.as_json()))
    if "stored" in measured:
        print("small objects, on one worker:", json.dumps(parts_of(measured["stored"], 0.0).as_json()))
    equal = all(run["equal"] for run in measured["runs"])
    confirmed = confirm(measured["pairs"])
    return 0 if equal and (confirmed or not arguments.confirm) else 1


if __name__ == "__main__":
    sys.exit(main())
