"""See that artifacts moved on their bytes are those that the library makes: `check_retarget.py SOURCE`.

Each artifact of SOURCE, a file, a folder or a zip file (by default our own), is brought to every version by its bytes
and by the library, which must read both to the same module, with locations, and refuse what we refuse. Prints what
differs, and what was seen.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.files import Kind, recognise
from vhlo_tools.findings import OPAQUE_PROPERTIES
from vhlo_tools.spec import known_versions, newest_version

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "tests" / "artifacts" / "corpus.zip"
BATCH = 40
#: Outcomes that are fine. The library cannot read the artifact (`unreadable`), or dies of it (`deadly`), or
#: only it can move attributes of other dialects (`opaque`); or it reads ops of other dialects, and does not write
#: them again (`not by the library`).
AGREED = {"same", "refused", "unreadable", "deadly", "opaque", "not by the library"}


def targets() -> list[str]:
    current = get_provider().library.current
    return [str(entry.version) for entry in known_versions() if entry.version.minor_release <= current.minor_release]


def artifacts_in(source: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the portable artifacts in a file, a folder or a zip file."""
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as archive:
            found = [(name, archive.read(name)) for name in archive.namelist()]
    else:
        paths = [source] if source.is_file() else sorted(source.rglob("*"))
        found = [(str(path), path.read_bytes()) for path in paths if path.is_file()]
    for name, data in found:
        if Path(name).suffix in (".mlirbc", ".bc") and recognise(data, name) is Kind.PORTABLE_ARTIFACT:
            yield name, data


def read(data: bytes) -> str:
    """Return the module that the library reads, with its locations, or that it cannot."""
    try:
        return get_provider().text(vt.deserialize(data), debug_info=True)
    except vt.MalformedArtifactError as error:
        return str(error)


def moved(data: bytes, target: str, engine: Literal["bytes", "mlir"]) -> bytes | None:
    """Return an artifact at ``target``; ``None`` if it cannot be there."""
    try:
        return bytes(vt.retarget(data, target, engine=engine))
    except vt.DowngradeError:
        return None


def compare(data: bytes, target: str) -> str:
    """Return how the two engines agree about one artifact and one version: ``same``, ``refused``, or what differs."""
    ours = moved(data, target, "bytes")
    try:
        theirs = moved(data, target, "mlir")
    except vt.UnsupportedFeatureError:
        return "not by the library" if ours is not None else "refused"
    if (ours is None) != (theirs is None):
        return "refused by us only" if ours is None else "refused by the library only"
    if ours is None or theirs is None:
        return "refused"
    return "same" if read(ours) == read(theirs) else "another module"


def session(source: Path, names: Sequence[str]) -> None:
    """Compare the artifacts called ``names``, and print a line for each version of each."""
    wanted = set(names)
    for name, data in artifacts_in(source):
        if name not in wanted:
            continue
        found = vt.open_artifact(data).requirements().reader_findings(newest_version())
        if any(finding.feature == "i2_attribute" for finding in found):
            print(f"deadly\t{name}\t-", flush=True)
            continue
        try:
            vt.deserialize(data)
        except vt.MalformedArtifactError:
            print(f"unreadable\t{name}\t-", flush=True)
            continue
        for target in targets():
            try:
                outcome = compare(data, target)
            except vt.UnsupportedFeatureError as error:
                outcome = "opaque" if error.findings[0].feature == OPAQUE_PROPERTIES else str(error)
            except vt.VhloToolsError as error:
                outcome = f"{type(error).__name__}: {error}".splitlines()[0]
            print(f"{outcome}\t{name}\t{target}", flush=True)


def batch(source: Path, names: Sequence[str]) -> list[list[str]]:
    """Compare artifacts in a process of their own; what ends it is found, and left out."""
    command = [sys.executable, __file__, str(source), "--session", *names]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in result.stdout.splitlines() if line.count("\t") == 2]
    if result.returncode == 0:
        return lines
    if len(names) == 1:
        said = (result.stderr.strip().splitlines() or ["nothing"])[-1]
        return [*lines, [f"the process ended with {result.returncode}: {said}", names[0], "?"]]
    half = len(names) // 2
    return batch(source, names[:half]) + batch(source, names[half:])


def main() -> int:
    """Compare all artifacts of a source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, nargs="?", default=ARCHIVE)
    parser.add_argument("--session", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each Nth artifact only")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.session:
        session(arguments.source, arguments.session)
        return 0
    names = [name for name, _ in artifacts_in(arguments.source)][:: arguments.every]
    batches = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(arguments.processes) as pool:
        for lines in pool.map(partial(batch, arguments.source), batches):
            for outcome, name, target in lines:
                counts[outcome] += 1
                if outcome not in AGREED:
                    print(f"{name} at {target}: {outcome}", flush=True)
    print(f"{len(names)} artifacts: {', '.join(f'{number} {outcome}' for outcome, number in counts.most_common())}")
    return 1 if counts.keys() - AGREED else 0


if __name__ == "__main__":
    raise SystemExit(main())
