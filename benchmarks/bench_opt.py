"""How long `vhlo opt` takes to start, beside the import of the bindings alone."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from support.processes import Run, run_measured

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
    raw = [sys.executable, "-c", "import jaxlib.mlir.ir"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(_PROGRAM)
        for name, flags in _FLAGS.items():
            ours = [sys.executable, "-m", "vhlo_tools.cli.entry", "opt", *flags, str(path)]
            yield f"vhlo opt as a process, {name}", partial(_run, ours), partial(_run, raw), list


def _run(command: list[str], _: object) -> Run:
    return run_measured(command)
