"""What a migration takes of a file and of a gigabyte, on this machine and in a store, each in one process.

``python benchmarks/bench_costs.py [--json FILE]`` with the extra ``remote`` and the group ``remote-test``. Processor
time and time of waiting for the disk are those that the kernel accounts for, so that other work on the machine is in
neither. Requests and bytes are those that the product counts (``vhlo_tools.files.counted``); their kinds are those that
a proxy saw between it and moto's S3 server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from support.faulty_proxy import proxied  # noqa: E402
from support.large_artifacts import write_artifact_of_constants  # noqa: E402
from support.store_servers import BUCKET, SERVERS, started  # noqa: E402

FROM: Final = "1.9.0"
TARGET: Final = "1.4.0"
#: Bytes of a file, and how many there are of it.
LOCAL: Final = ((1_000, 300), (100_000, 300), (100_000_000, 4), (1_000_000_000, 1))
STORED: Final = ((1_000, 100), (100_000, 100), (100_000_000, 1), (400_000_000, 1))
_CONSTANT: Final = 40_000

# A first migration imports what the measured one finds imported. Its own threads do what talks with a store.
_MIGRATION: Final = """
import json, sys, time
sys.path[:0] = sys.argv[4:]
from process_accounts import Account, accounts_of
import vhlo_tools as vt
from vhlo_tools.files import counted
first, store, target = sys.argv[1:4]
list(vt.migrate(first, target))
before, began = sum(accounts_of().values(), Account()), time.perf_counter()
with counted() as traffic:
    records = list(vt.migrate(store, target))
seconds, used = time.perf_counter() - began, sum(accounts_of().values(), Account()) - before
assert {each.status for each in records} == {"moved"}, records
print(json.dumps([seconds, used.cpu, used.queued, traffic.requests, traffic.bytes_read, traffic.bytes_written]))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a migration took of each file, in seconds, requests and bytes."""

    size: int  # the size of a file
    seconds: float  # in all, those in which other work had the cores too
    cpu: float  # on a core
    wait: float  # of waiting for the disk, or for the store
    requests: float = 0.0  # the requests that the product counted
    read: float = 0.0  # the bytes of the file that it read
    written: float = 0.0  # the bytes that it wrote
    kinds: dict[str, float] | None = None  # the requests that a proxy saw, by what they are


def migrated(first: str, store: str, number: int, size: int) -> Cost:
    """Migrate a store in a process of its own, after another one, and return what each of its files took."""
    command = [sys.executable, "-c", _MIGRATION, first, store, TARGET, str(ROOT), str(Path(__file__).parent)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, cpu, queued, *traffic = (each / number for each in json.loads(done.stdout))
    return Cost(size, seconds, cpu, max(0.0, seconds - cpu - queued), *traffic)


def filled(folder: Path, size: int, number: int) -> Path:
    """Fill a folder with artifacts, each of constants of a size in all."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_artifact_of_constants(folder / "0.mlirbc", size, max(1, min(16, size // _CONSTANT)), FROM)
    for each in range(1, number):
        shutil.copyfile(folder / "0.mlirbc", folder / f"{each}.mlirbc")
    os.sync()
    return folder


def on_this_machine(folder: Path, repeats: int) -> list[Cost]:
    """Measure files of this machine; the medians of several runs."""
    costs = []
    for size, number in LOCAL:
        runs = []
        for _ in range(repeats):
            first, store = filled(folder / "first", 1_000, 1), filled(folder / "store", size, number)
            runs.append(migrated(str(first), str(store), number, size))
        costs.append(_median(runs))
    return costs


def in_a_store(folder: Path, repeats: int) -> list[Cost]:
    """Measure objects in moto's S3 server."""
    costs = []
    with started("s3", folder) as port, proxied(port) as (between, faults):
        os.environ.update(SERVERS["s3"].settings(between))
        for size, number in STORED:
            runs, kinds = [], Counter[str]()
            for repeat in range(repeats):
                name = f"{size}-{repeat}-store"
                first, store = f"s3://{BUCKET}/{size}-{repeat}-first/", f"s3://{BUCKET}/{name}/"
                _upload(filled(folder / "first", 1_000, 1), first)
                _upload(filled(folder / "store", size, number), store)
                faults.requests.clear()
                runs.append(migrated(first, store, number, size))
                kinds += Counter(_kind(*each) for each in faults.requests if name in each[1])
            cost = asdict(_median(runs))
            costs.append(Cost(**{**cost, "kinds": {name: each / number / repeats for name, each in kinds.items()}}))
    return costs


def _upload(folder: Path, url: str) -> None:
    from vhlo_tools.files import place, write_object
    from vhlo_tools.files.mapping import map_file

    for path in folder.iterdir():
        write_object(place(url + path.name), [map_file(path)])  # type: ignore[arg-type]


def _kind(method: str, path: str) -> str:
    """Return what a request is: of the claim, a part of an upload, or its method."""
    if "list-type=2" in path:
        return "LIST"
    if ".vhlo-" in path:
        return "claim"
    return f"{method} part" if re.search("partNumber|uploads|uploadId", path) else method


def _median(runs: Sequence[Cost]) -> Cost:
    numbers = (each for each in asdict(runs[0]) if each != "kinds")
    return Cost(**{name: statistics.median(getattr(each, name) for each in runs) for name in numbers})


def table_of(title: str, costs: Sequence[Cost]) -> Table:
    """Return a table, with times in milliseconds."""
    names = ("bytes", "ms", "ms of processor", "ms of waiting", "requests", "read", "written", "kinds")
    table = Table(*names, title=title)
    for each in costs:
        times = (f"{seconds * 1e3:.2f}" for seconds in (each.seconds, each.cpu, each.wait))
        kinds = ", ".join(f"{name} {number:.2f}" for name, number in sorted((each.kinds or {}).items()))
        table.add_row(
            f"{each.size:,}", *times, f"{each.requests:.2f}", f"{each.read:,.0f}", f"{each.written:,.0f}", kinds
        )
    return table


def main() -> int:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = {}
        for name, measure in (("files on this machine", on_this_machine), ("objects in a store", in_a_store)):
            (own := Path(folder) / name).mkdir()
            found[name] = measure(own, options.repeats)
            Console(width=160).print(table_of(f"{name}, each", found[name]))
    if options.json:
        options.json.write_text(json.dumps({name: [asdict(each) for each in costs] for name, costs in found.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
