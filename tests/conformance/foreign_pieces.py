"""Put the test programs of other projects through this package, beside the raw library: `foreign_pieces.py REPOSITORY`.

A REPOSITORY is a git directory, whose newest commit is read: its files of MLIR that name StableHLO, MHLO, CHLO, VHLO or
Shardy, cut where their runners cut them. Each piece is serialized, read again, and checked, as text of the caller and
as bytes of nobody. Prints, for each repository, how many pieces ended in which way, and each that ended the process,
raised an error without a type, or was written and is not read; of these there must be none.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from isolated_cases import work_off

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider

_CUT: Final = re.compile(r"^\s*// -----.*$", re.MULTILINE)
_ABOUT: Final = re.compile(r"\b(?:stablehlo|mhlo|chlo|vhlo|sdy)\.")
_SECONDS: Final = 120.0
#: What must not be.
_WRONG: Final = ("died", "too-long", "raised", "written and not read")


class Piece(NamedTuple):
    """A piece of a file."""

    place: str  # the file, and the number of the piece in it
    text: str


def pieces_of(repository: str) -> Iterator[Piece]:
    """Yield the pieces of the files in the newest commit of a git directory."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=True).stdout

    for name in git("ls-tree", "-r", "-z", "--name-only", "HEAD").decode(errors="surrogateescape").split("\0"):
        if name.endswith(".mlir"):
            try:
                text = git("show", f"HEAD:{name}").decode(errors="replace")
            except subprocess.CalledProcessError:
                print(f"{name} is not in this copy of the repository")
                continue
            for number, part in enumerate(_CUT.split(text) if _ABOUT.search(text) else ()):
                if _ABOUT.search(part):
                    yield Piece(f"{name}#{number}", part)


def ours(piece: Piece) -> list[str]:
    """Return how the piece ended as text, as bytes, for an old version, and in a check."""
    return [
        _ended(lambda: vt.deserialize(vt.serialize(piece.text), trusted=True)),
        _ended(lambda: vt.deserialize(vt.serialize(piece.text.encode()))),
        _ended(lambda: vt.deserialize(vt.serialize(piece.text, target="1.0.0", expand=True), trusted=True)),
        _ended(lambda: vt.check(piece.text, "12w")),
    ]


def _ended(call: object) -> str:
    assert callable(call)
    try:
        call()
    except vt.MalformedArtifactError:
        return "written and not read"  # no artifact was given
    except vt.VhloToolsError as error:
        return f"refused: {type(error).__name__}"
    return "done"


def raw(piece: Piece) -> list[str]:
    """Return how the piece ends with the bindings alone."""
    provider = get_provider()
    context = provider.new_context()
    try:
        module = provider.ir.Module.parse(piece.text, context)
        data = provider.stablehlo.serialize_portable_artifact(module, provider.stablehlo.get_current_version(), False)
    except Exception:
        return ["refused"]
    try:
        provider.stablehlo.deserialize_portable_artifact(provider.new_context(), data)
    except Exception:
        return ["written and not read"]
    return ["done"]


def main() -> int:
    """Return 1 if anything ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", metavar="REPOSITORY")
    parser.add_argument("--jobs", type=int, default=2, help="processes [default: 2]")
    arguments = parser.parse_args()
    wrong = 0
    for repository in arguments.repositories:
        pieces = list(pieces_of(repository))
        for worker in (ours, raw):
            counts: Counter[str] = Counter()
            ends = work_off(
                f"{Path(__file__).stem}:{worker.__name__}", pieces, processes=arguments.jobs, timeout=_SECONDS
            )
            for ended in ends:
                found = ended.result if ended.how == "done" else [ended.how]
                counts.update(found)
                if worker is ours and (bad := [each for each in found if each in _WRONG]):
                    wrong += 1
                    print(f"{ended.case.place}: {', '.join(bad)}: {str(ended.result)[-400:]}", flush=True)
            said = ", ".join(f"{each} {count}" for each, count in counts.most_common())
            print(f"{Path(repository).parent.name}: {len(pieces)} pieces, {worker.__name__}: {said}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
