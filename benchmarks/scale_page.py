"""The tables of docs/scale.md, made from what was measured: `scale_page.py [--write]`.

`bench_cluster.py`, `bench_costs.py` and `bench_cluster_memory.py` measure, each with `--json FILE`; `scale_page.py
--gather CLUSTER COSTS MEMORY` keeps of these files what the page needs, in `benchmarks/scale_measured.json`. What is
assumed, and what providers say, stands below.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from page_tables import rows_of, with_tables
from simulate_cluster import Parts, simulate

PAGE: Final = Path(__file__).parents[1] / "docs" / "scale.md"
MEASURED: Final = Path(__file__).with_name("scale_measured.json")

#: Assumed: the seconds until a store answers, and the bytes that go each way in a second between it and a worker.
LATENCY: Final = 0.05
NETWORK: Final = 10e9 / 8
#: Requests in a second that Amazon allows on one prefix.
READS: Final = 5_500
WRITES: Final = 3_500
#: The limits of a batch of small files, as vhlo_tools.stores.migration has them.
FILES: Final = 32
#: Parts of an upload, as vhlo_tools.files.objects has them: so many of a size, then of twice that.
PART: Final = 1 << 23
EQUAL_PARTS: Final = 1_000

WORKERS: Final = (10, 100, 1_000, 10_000)
#: Numbers of files, and their sizes.
SMALL: Final = (1_000_000_000, 100_000)
LARGE: Final = (1_000_000, 10_000_000_000)

#: So many runs, the last ones, had the machine nearly alone.
QUIET: Final = 6

Measured = dict[str, Any]


def gathered(cluster: Measured, costs: Measured, memory: Measured) -> Measured:
    """Return what the page needs of the files of the benchmarks."""
    import bench_cluster  # which needs a cluster's packages

    runs = []
    for run in cluster["runs"]:
        kept = {name: run[name] for name in ("name", "files", "seconds")}
        if "durations" in run:
            kept |= {"batches": run["batches"], "batch": statistics.median(run["durations"])}
        runs.append(kept)
    return {
        "runs": runs,
        "parts": Parts.median(map(bench_cluster.calibrated, cluster["pairs"])).as_json(),
        "stored": bench_cluster.parts_of(cluster["stored"], cluster["stored"]["listing"]).as_json(),
        "confirmed": list(bench_cluster.compared(cluster["pairs"])),
        "costs": costs,
        "memory": memory,
    }


def written(page: str, measured: Measured) -> str:
    """Return a page with its tables made anew, each of which stands after a comment that names it."""
    return with_tables(page, TABLES, measured)


def _time(seconds: float) -> str:
    """Return a time as a person says it."""
    for limit, unit, name in ((120, 1, "s"), (7_200, 60, "min"), (72 * 3_600, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:,.0f} days"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"


def _runs(measured: Measured) -> str:
    titles = ("run", "files", "s", "files/s", "batches", "ms per batch, median")
    rows = []
    for run in measured["runs"][-QUIET:]:
        cells = [run["name"], f"{run['files']:,}", f"{run['seconds']:.1f}", f"{run['files'] / run['seconds']:.0f}"]
        some = [run["batches"], f"{run['batch'] * 1e3:.0f}"] if "batch" in run else ["-"] * 2
        rows.append([*cells, *some])
    return rows_of(titles, rows)


def _parts(measured: Measured) -> str:
    files, objects = Parts(**measured["parts"]), Parts(**measured["stored"])
    names = {
        "listing": "`L`, client, listing a file",
        "client": "`C`, client, a batch",
        "client_wait": "client, a batch: waiting for the disk",
        "client_loop": "client, messages of a batch",
        "scheduler": "`S`, scheduler, a batch",
        "worker_cpu": "`W`, worker, a batch",
        "worker_wait": "worker, a batch: waiting for the disk or the store",
        "worker_loop": "worker, messages of a batch",
        "startup": "worker, before its first batch",
    }
    rows = [[title, *(_ms(getattr(each, name)) for each in (files, objects))] for name, title in names.items()]
    rows[-1][-1] = "-"
    return rows_of(("part", "ms, files", "ms, objects"), rows)


def _stored(measured: Measured, size: int) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in measured["costs"]["objects in a store"] if each["size"] == size)
    return found


def _requests(cost: dict[str, Any]) -> float:
    return float(sum(number for kind, number in cost["kinds"].items() if kind not in ("LIST", "claim")))


def _small_parts(measured: Measured) -> Parts:
    """Return the parts of a migration of small objects: the store's answers are assumed, the rest measured."""
    cost = _stored(measured, SMALL[1])
    wait = _requests(cost) * LATENCY + (cost["read"] + cost["written"]) / NETWORK
    parts, files = Parts(**measured["stored"]), Parts(**measured["parts"])
    return replace(
        parts,
        files_per_batch=FILES,
        # The threads of the client take turns, for they are Python. Messages are those of files, whatever is in them.
        client=parts.client + files.client_loop,
        client_loop=0.0,
        scheduler=files.scheduler,
        worker_cpu=FILES * cost["cpu"],
        worker_wait=FILES * wait,
        worker_loop=files.worker_loop,
        startup=0.0,
    )


def _small(measured: Measured) -> str:
    parts, batches = _small_parts(measured), SMALL[0] / FILES
    client = parts.listing * FILES + parts.client + parts.client_wait
    rows = []
    for workers in WORKERS:
        # A part of the files, scaled.
        some = FILES * max(3_000, 4 * workers)
        said = simulate(parts, files=some, workers=workers)
        times = ((parts.worker_cpu + parts.worker_wait) / workers, client, parts.scheduler)
        busy = (f"{each:.0%}" for each in (said.client, said.scheduler, said.workers))
        rows.append(
            [f"{workers:,}", *(_time(batches * each) for each in times), _time(said.seconds * SMALL[0] / some), *busy]
        )
    titles = ("workers", "workers alone", "client alone", "scheduler alone", "simulated")
    return rows_of((*titles, "client busy", "scheduler busy", "workers busy"), rows)


def _limits(measured: Measured) -> str:
    parts = _small_parts(measured)
    slowest = max(parts.listing * FILES + parts.client + parts.client_wait, parts.scheduler)
    workers = (parts.worker_cpu + parts.worker_wait) / slowest
    cores = parts.worker_cpu / slowest
    rows = [
        ["a batch takes a worker", _time(parts.worker_cpu + parts.worker_wait)],
        ["of that, its processor", f"{parts.worker_cpu * 1e3:.0f} ms"],
        ["workers beyond which more do not help", f"{workers:.0f}"],
        ["cores that these need", f"{cores:.0f}"],
        ["objects each second, then", f"{FILES / slowest:,.0f}"],
        ["16 clients with as many workers each", _time(SMALL[0] / FILES * slowest / 16)],
    ]
    return rows_of(("100 kB, 32 in a batch", ""), rows)


def _uploaded_parts(size: int) -> int:
    """Return the number of parts of an upload."""
    number = 0
    while size > 0:
        size -= min(PART << number // EQUAL_PARTS, 1 << 29)
        number += 1
    return number


def _large(measured: Measured) -> str:
    few, many = (_stored(measured, each) for each in (100_000_000, 400_000_000))

    def grown(less: float, more: float) -> float:
        """Return what a file of the larger size takes, by the line through two that were measured."""
        return float(less + (more - less) / (many["size"] - few["size"]) * (LARGE[1] - few["size"]))

    cpu, read, out = (grown(few[name], many[name]) for name in ("cpu", "read", "written"))
    reads = grown(few["kinds"]["GET"], many["kinds"]["GET"]) + few["kinds"]["HEAD"]
    # An upload is begun and completed.
    writes = _uploaded_parts(LARGE[1]) + 2
    parts, number = _small_parts(measured), LARGE[0]
    shared = {
        "client": number * (parts.listing + parts.client + parts.client_wait),
        "scheduler": number * parts.scheduler,
        "reads": number * reads / READS,
        "writes": number * writes / WRITES,
    }
    rows = []
    for workers in WORKERS:
        own = {"processor": number * cpu / workers, "network": number * (read + out) / NETWORK / workers}
        all_of_it = own | shared
        slowest = max(all_of_it, key=lambda name: all_of_it[name])
        rows.append([f"{workers:,}", *map(_time, all_of_it.values()), slowest])
    network = f"network, {read / 1e9:.0f} GB in and {out / 1e9:.0f} out"
    requests = (f"{reads:,.0f} reads of each, one prefix", f"{writes:,} writes of each, one prefix")
    return rows_of(
        ("workers", f"processor, {cpu:.0f} s", network, "client", "scheduler", *requests, "the slowest"), rows
    )


TABLES: Final[dict[str, Callable[[Measured], str]]] = {
    "runs": _runs,
    "parts": _parts,
    "small": _small,
    "small limits": _limits,
    "large": _large,
}


def main() -> None:
    """Print the tables, write the page, or gather what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write them into the page")
    parser.add_argument("--gather", type=Path, nargs=3, metavar=("CLUSTER", "COSTS", "MEMORY"))
    given = parser.parse_args()
    if given.gather:
        found = gathered(*(json.loads(each.read_text()) for each in given.gather))
        MEASURED.write_text(json.dumps(found, indent=1) + "\n")
    measured = json.loads(MEASURED.read_text())
    if given.write:
        PAGE.write_text(written(PAGE.read_text(), measured))
        return
    for name, table in TABLES.items():
        print(f"{name}\n{table(measured)}\n")


if __name__ == "__main__":
    main()
