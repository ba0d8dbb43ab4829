"""How long `vhlo opt` takes to start, beside the import of the bindings alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

__all__ = ["cases"]

_PROGRAM: Final = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.tanh %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""

#: Flags of `vhlo opt`, by what is measured.
_FLAGS: Final = {
    "parse and print": [],
    "one pass": ["--canonicalize"],
    "two passes and bytecode": ["--stablehlo-legalize-to-vhlo", "--vhlo-to-version=target=1.0.0", "--emit-bytecode"],
}

Case = tuple[str, Callable[[Any], object], Callable[[Any], object], Callable[[], Any]]


def cases() -> Iterator[Case]:
    """Yield the name of each case, what we do, what the bindings do, and what gives the input."""
    # A user's Python keeps what it has compiled; without this, every run would compile the package anew.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    raw = [sys.executable, "-c", "import jaxlib.mlir.ir"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(_PROGRAM)
        for name, flags in _FLAGS.items():
            ours = [sys.executable, "-m", "vhlo_tools.cli.entry", "opt", *flags, str(path)]
            yield f"vhlo opt as a process, {name}", partial(_run, ours, usual), partial(_run, raw, usual), list


def _run(command: list[str], environment: dict[str, str], _: object) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
