"""What the `make_*.py` scripts share: run a producer and write its bytes, the same on any machine.

A script hands `main` a function that builds the file's content. Nothing of the machine may leak
into those bytes, so the producer runs under a fixed configuration, and on a thread of its own,
where its call stack begins.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
from jax.stages import Lowered

PRODUCER = "0.10.2"
"""The jax release that wrote the files in the repository; another one writes other bytes."""


def main(build: Callable[[], bytes], name: str, *, tracebacks: bool = False) -> None:
    """Write what `build` returns to a file `name`, in the folder the command line asks for.

    An op's location is the line of the script that made it. With `tracebacks` it is all that JAX
    records by default: a call site per frame, each with a function's name and a range of columns.
    """
    main_of_many({name: build}, tracebacks=tracebacks)


def main_of_many(builds: Mapping[str, Callable[[], bytes]], *, tracebacks: bool = False) -> None:
    """Write several files, each with what the function of its name returns; as `main`."""
    parser = argparse.ArgumentParser(description=f"Rewrite {', '.join(builds)}.")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent,
        metavar="DIR",
        help="folder to write to (default: the examples folder)",
    )
    folder: Path = parser.parse_args().out
    if jax.__version__ != PRODUCER:
        print(f"note: jax {jax.__version__}, not {PRODUCER}: expect other bytes", file=sys.stderr)

    jax.config.update("jax_platforms", "cpu")
    # JAX deletes what the pattern matches from file names: here, all that precedes "examples/".
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r"^.*/(?=examples/[^/]+$)")
    jax.config.update("jax_include_full_tracebacks_in_locations", tracebacks)
    for name, build in builds.items():
        # On a new thread no frame of whoever runs the script can get into a traceback.
        with ThreadPoolExecutor(max_workers=1) as executor:
            content = executor.submit(build).result()
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def mlir_text(lowered: Lowered, *, locations: bool = True) -> bytes:
    """The StableHLO of a lowered function, as MLIR text."""
    text: str = lowered.as_text(dialect="stablehlo", debug_info=locations)
    return text.encode()


def mlir_bytecode(lowered: Lowered) -> bytes:
    """The StableHLO of a lowered function, as MLIR bytecode that is not a portable artifact."""
    module = lowered.compiler_ir(dialect="stablehlo")
    assert module is not None
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
