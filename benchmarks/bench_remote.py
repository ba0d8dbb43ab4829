"""What commands read of a large artifact in a store, and the memory that they take, each as a process.

``python benchmarks/bench_remote.py [--store azure|s3] [--megabytes 4096] [--constants 4]``, with the extra ``remote``
and the group ``remote-test``. The server is Azurite, which keeps objects in files; moto, for S3, copies a whole object
for each range of it, so that only bytes, requests and memory tell something there. Requests and bytes are those that a
proxy saw.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from support.faulty_proxy import proxied  # noqa: E402
from support.large_artifacts import write_artifact_of_constants  # noqa: E402
from support.processes import run_measured  # noqa: E402
from support.store_servers import BUCKET, SERVERS, started  # noqa: E402

MEGABYTE = 1 << 20
VHLO = [sys.executable, "-m", "vhlo_tools.cli.main"]
COPY = """
import sys
from pathlib import Path
from vhlo_tools.files.mapping import map_file
from vhlo_tools.files import place, write_object
write_object(place(sys.argv[2]), [map_file(Path(sys.argv[1]))])
"""


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", choices=("azure", "s3"), default="azure")
    parser.add_argument("--megabytes", type=int, default=4096)
    parser.add_argument("--constants", type=int, default=4)
    options = parser.parse_args()
    server = SERVERS[options.store]
    table = Table("command", "requests", "sent by the store, MB", "seconds", "peak memory, MB")
    with tempfile.TemporaryDirectory() as folder, started(options.store, Path(folder)) as port:
        file = Path(folder) / "large.mlirbc"
        write_artifact_of_constants(file, options.megabytes * MEGABYTE, options.constants, "1.9.0")
        url = f"{server.scheme}://{BUCKET}/large.mlirbc"
        commands = {
            "idle, with the libraries": [*VHLO, "inspect", f"{server.scheme}://{BUCKET}/none"],
            "upload": [sys.executable, "-c", COPY, str(file), url],
            "inspect": [*VHLO, "inspect", url],
            "check": [*VHLO, "check", url, "--target", "1.4.0"],
            "retarget": [*VHLO, "retarget", url, "--target", "1.4.0", "-o", f"{url}.moved.mlirbc"],
        }
        os.environ["PYTHONPATH"] = str(ROOT)
        for name, command in commands.items():
            with proxied(port) as (between, faults):
                os.environ.update(server.settings(between))
                run = run_measured(command, codes=(0, 2) if name.startswith("idle") else (0,))
                cells = (len(faults.requests), f"{faults.sent / MEGABYTE:.2f}", f"{run.seconds:.1f}")
                table.add_row(name, *map(str, cells), str(run.peak // MEGABYTE))
            if name == "upload":
                file.unlink()
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
