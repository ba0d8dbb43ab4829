"""See that decoding and encoding is the identity for every bytecode file in a folder: `check_identity.py DIR`.

`make_corpus.py build DIR` makes such a folder. Prints how many files were tried, and fails at the first that differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vhlo_tools.bytecode import decode, encode, encode_entry
from vhlo_tools.files import Kind, recognise
from vhlo_tools.spec import EntryKind

KINDS: tuple[EntryKind, EntryKind] = ("attribute", "type")


def check(data: bytes) -> int:
    """Take a file apart, down to the fields of attributes and types, and put it together again.

    Returns:
        The number of attributes and types that no specification describes, and that stay bytes.

    Raises:
        AssertionError: If something differs.
    """
    file = decode(data)
    file.load()
    assert encode(file) == data
    opaque = 0
    for kind, table in zip(KINDS, (file.attributes, file.types), strict=True):
        for index, entry in enumerate(table):
            value = file.decode(kind, index)
            if value is None:
                opaque += 1
            else:
                assert encode_entry(file, kind, value) == entry.data, (kind, index, value)
    return opaque


def main() -> None:
    """Check a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    files = opaque = 0
    for path in sorted(parser.parse_args().folder.rglob("*")):
        if path.suffix not in (".mlirbc", ".bc"):
            continue
        data = path.read_bytes()
        assert recognise(data, str(path)) in (Kind.PORTABLE_ARTIFACT, Kind.MLIR_BYTECODE)
        try:
            opaque += check(data)
        except AssertionError as error:
            print(f"{path}: not the same again: {error}", file=sys.stderr)
            raise SystemExit(1) from error
        files += 1
    print(f"{files} files are themselves again; {opaque} attributes and types in them stay bytes")


if __name__ == "__main__":
    main()
