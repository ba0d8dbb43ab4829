"""What the core that needs nothing but the standard library makes of artifacts: ``bytes_core.py CHECKOUT [EVERY]``.

Of every so many artifacts of ``tests/artifacts/corpus.zip``: what is in it, what it requires, its aliases, and itself
at three versions, each as a digest. Prints them as JSON, with the version of Python.
``scripts/check_pyodide.py`` compares what two Pythons print.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

#: Down, across the step at which encodings change most, and up.
TARGETS = ("0.9.0", "1.0.0", "1.22.0")


def digest(value: object) -> str:
    """Return a short digest of bytes, or of a value as it is shown."""
    data = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def outcome(make: Callable[[], object]) -> str:
    """Return the digest of what a call returns, or of the error of the toolkit that it raises."""
    import vhlo_tools as vt

    try:
        return digest(make())
    except vt.VhloToolsError as error:
        return f"{type(error).__name__}: {digest(str(error))}"


def moved(artifact: Any, target: str) -> bytes:
    """Return an artifact at a version, as bytes."""
    import vhlo_tools as vt

    return bytes(vt.retarget(artifact, target, engine="bytes"))


def answers(data: bytes, name: str) -> dict[str, str]:
    """Return the digests of what is said of an artifact."""
    import vhlo_tools as vt

    artifact = vt.open_artifact(data, name=name)
    made = {
        "inventory": outcome(lambda: sorted(artifact.inventory().ops.items())),
        "requirements": outcome(lambda: str(artifact.requirements().readable_since)),
        "downgradable": outcome(lambda: str(artifact.requirements().downgradable_to)),
        "aliases": outcome(lambda: artifact.aliases().aliases),
    }
    for target in TARGETS:
        made[target] = outcome(partial(moved, artifact, target))
    return made


def main() -> None:
    """Print the answers."""
    checkout, every = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    sys.path.insert(0, str(checkout))
    with zipfile.ZipFile(checkout / "tests" / "artifacts" / "corpus.zip") as archive:
        rows = [row for row in json.loads(archive.read("index.json")) if not row["ordinary"]][::every]
        found = {row["file"]: answers(archive.read(row["file"]), row["file"]) for row in rows}
    print(json.dumps({"python": sys.version.split()[0], "files": found}))


if __name__ == "__main__":
    main()
