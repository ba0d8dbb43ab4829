"""Find the CPython interpreters of this machine that can make environments.

``interpreters.py --list`` prints all of them, newest first; ``--newest`` the path of the newest; ``3.12`` the path of
that one.
"""

from __future__ import annotations

import argparse
import re
import sys

from vhlo_tools.releases import find_interpreters


def parse_version(text: str) -> tuple[int, int]:
    """Parse a version such as ``3.12``."""
    match = re.fullmatch(r"(3)\.(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 3.12")
    return int(match[1]), int(match[2])


def main() -> int:
    """Print interpreters."""
    parser = argparse.ArgumentParser(description="find the CPython interpreters of this machine (3.11 and newer)")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--list", action="store_true", help="print all, newest first, as VERSION PATH")
    which.add_argument("--newest", action="store_true", help="print the path of the newest")
    which.add_argument("version", nargs="?", type=parse_version, help="print the path of this one, such as 3.12")
    options = parser.parse_args()
    found = find_interpreters(min((3, 11), options.version or (3, 11)))
    if options.list:
        for (major, minor), path in found.items():
            print(f"{major}.{minor} {path}")
        return 0
    chosen = next(iter(found.values()), None) if options.newest else found.get(options.version)
    if chosen is None:
        print("interpreters: no such CPython with venv and ensurepip on this machine", file=sys.stderr)
        return 1
    print(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
