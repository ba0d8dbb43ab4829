"""Let pyright say whether the type of everything public is known to the type checkers of users.

They see what is written only: an attribute without an annotation may be inferred otherwise, or not at all. Run it with
the Python of the development environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
#: Of one symbol, pyright gives each reason; the first is enough to find it.
_SHOWN: Final = 50


def verified_types(root: Path = ROOT) -> Mapping[str, Any]:
    """Return what pyright says of the types of the package in the checkout ``root``.

    Raises:
        RuntimeError: If pyright cannot be run.
    """
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    command += ["--verifytypes", "vhlo_tools", "--ignoreexternal", "--outputjson"]
    # An editable installation is a hook, which pyright does not run.
    variables = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True, check=False)
    try:
        found: Mapping[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        raise RuntimeError(f"pyright cannot be run here: {(done.stderr or done.stdout).strip()[-500:]}") from None
    return found


def incomplete(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each public symbol whose type is not known, or is known to some checkers only."""
    for symbol in found["symbols"]:
        if symbol["isExported"] and (not symbol["isTypeKnown"] or symbol.get("isTypeAmbiguous")):
            reasons = [each for each in symbol["diagnostics"] if each.get("file")]
            where = f"{reasons[0]['file']}:{reasons[0]['range']['start']['line'] + 1}: " if reasons else ""
            said = " ".join(reasons[0]["message"].split()) if reasons else "its type is not known"
            yield f"{where}{symbol['name']}: {said}"


def main() -> int:
    """Check the types of this checkout."""
    try:
        found = verified_types()
    except RuntimeError as error:
        print(f"check_types: {error}", file=sys.stderr)
        return 2
    lines = list(incomplete(found))
    print("\n".join(lines[:_SHOWN]), end="\n" if lines else "")
    known = found["exportedSymbolCounts"]["withKnownType"]
    print(f"{found['completenessScore']:.2%} of the public types are known: {known} are, and {len(lines)} are not")
    return 0 if known and not lines else 1


if __name__ == "__main__":
    sys.exit(main())
