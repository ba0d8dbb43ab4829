"""What every command counts in one store with files of all kinds, in every format and at every place.

``python benchmarks/one_store.py [--files 1000] [--everywhere]`` makes the store, and prints a row for each: programs
that can be read, others, and files that are none. It fails if a row differs from what was written. ``--everywhere`` has
the same store in a bucket of S3 (moto), and by the workers of a Dask cluster: it needs the extras ``remote`` and
``distributed`` with the packages of their tests.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.page_data import contents_of  # noqa: E402
from support.store_of_kinds import Counts, fill  # noqa: E402

from vhlo_tools.cli.main import main as vhlo  # noqa: E402
from vhlo_tools.gate import FORMATS  # noqa: E402

_CHECK: Final = ("check", "STORE", "--target", "1.9.0", "--no-cache")


def counted(output_format: str, text: str) -> Counts:
    """Return what a report of `check`, `migrate` or `store status` counts; text and annotations say no more than it."""
    if output_format == "junit":
        cases = [*ElementTree.fromstring(text).iter("testcase")]
        broken = sum(case.get("name") == "readable" for case in cases)
        return Counts(len(cases) - broken, broken, -1)
    if output_format == "sarif":
        (run,) = json.loads(text)["runs"]
        broken = sum(each["ruleId"] == "unreadable" for each in run["results"])
        return Counts(len(run["artifacts"]) - broken, broken, -1)
    if output_format in ("gitlab", "github", "concise"):
        return Counts(-1, len(json.loads(text)) if output_format == "gitlab" else len(text.splitlines()), -1)
    if output_format == "text":
        words = text.splitlines()[-1].replace(",", "").replace(";", "").split()
        others = int(words[words.index("other") - 1])
        broken = int(words[words.index("cannot" if "cannot" in words else "unreadable") - 1])
        good = int(words[1]) - broken if words[0] == "checked" else -1
        return Counts(good, broken, others)
    if output_format == "jsonl":
        *files, end = map(json.loads, text.splitlines())
    else:
        end = json.loads(text)
        files = end["files"]
    broken = sum(each["kind"] is None or each.get("status") == "unreadable" for each in files)
    return Counts(len(files) - broken, broken, end["summary"]["unrecognised"])


def rows(store: str, *where: str) -> Iterator[tuple[str, Callable[[], Counts]]]:
    """Yield what is run, and a function that runs it and counts."""

    def said(*words: str) -> str:
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)) as printed,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            vhlo([each if each != "STORE" else store for each in words])
            printed.seek(0)
            return printed.read()

    def reading(output_format: str, *words: str) -> Callable[[], Counts]:
        return lambda: counted(output_format, said(*words, "--output-format", output_format, *where))

    for each in FORMATS:
        yield f"check, {each}", reading(each, *_CHECK)
    for each in ("text", "json", "jsonl"):
        yield f"migrate --dry-run, {each}", reading(each, "migrate", "STORE", "--target", "1.9.0", "--dry-run")
    for each in ("text", "json"):
        yield f"store status, {each}", reading(each, "store", "status", "STORE")
    if not where and "://" not in store:
        yield "report", lambda: _of_page(store)


def _of_page(store: str) -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        with contextlib.redirect_stderr(io.StringIO()):
            vhlo(["report", store, "-o", str(page)])
        held = contents_of(page.read_text(encoding="utf-8"))
    broken = sum(bool(each["error"]) for each in held["files"])
    return Counts(len(held["files"]) - broken, broken, held["others"])


def differs(found: Counts, written: Counts) -> bool:
    """Whether a count is not what was written; -1 is what a format does not say."""
    return any(one not in (-1, other) for one, other in zip(found, written, strict=True))


def _shown(place: str, store: str, written: Counts, *where: str) -> bool:
    is_right = True
    for what, count in rows(store, *where):
        begun = time.perf_counter()
        found = count()
        wrong = differs(found, written)
        is_right &= not wrong
        numbers = " ".join(f"{'-' if each < 0 else each:>7}" for each in found)
        print(
            f"{place:8} {what:26} {numbers} {time.perf_counter() - begun:7.1f} {'WRONG' if wrong else ''}", flush=True
        )
    return is_right


def main() -> int:
    """Return 1 if a count differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--everywhere", action="store_true", help="in a bucket and on a cluster too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        written = fill(store, given.files)
        print(f"{'place':8} {'command, format':26}    good  broken  others seconds")
        print(f"{'written':35} {' '.join(f'{each:>7}' for each in written)}")
        is_right = _shown("folder", str(store), written)
        if given.everywhere:
            is_right &= _elsewhere(store, written, Path(folder))
    return int(not is_right)


def _elsewhere(store: Path, written: Counts, folder: Path) -> bool:
    from support.dask_cluster import running_cluster
    from support.store_servers import BUCKET, SERVERS, started

    from vhlo_tools.files import place, write_object

    (folder / "s3").mkdir()
    with started("s3", folder / "s3") as port:
        os.environ |= SERVERS["s3"].settings(port)
        url = f"s3://{BUCKET}/store/"
        for path in (each for each in store.rglob("*") if each.is_file()):
            write_object(place(url + path.relative_to(store).as_posix()), [path.read_bytes()])  # type: ignore[arg-type]
        is_right = _shown("S3", url, written)
        with running_cluster(folder, 2) as cluster:
            is_right &= _shown("Dask", str(store), written, "--dask", cluster.address)
            is_right &= _shown("Dask, S3", url, written, "--dask", cluster.address)
    return is_right


if __name__ == "__main__":
    sys.exit(main())
