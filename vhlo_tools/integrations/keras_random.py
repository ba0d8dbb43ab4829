"""Random numbers that a Keras model draws while it is traced, from states that no program has as an argument."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from vhlo_tools.findings import Finding, SourceLocation

_OWN: Final = str(Path(__file__).parents[1])
#: Folders of packages whose lines are not the user's.
_FRAMEWORKS: Final = re.compile(r"/(?:site|dist)-packages/(?:jax|keras|keras_hub|tensorflow|torch)/|<")
_RANDOM: Final = "/keras/src/random/random.py"


@contextmanager
def recorded_draws() -> Iterator[dict[Finding, None]]:
    """Record draws from ``keras.random.SeedGenerator``: a finding for each generator and line of user code."""
    import keras

    # In order; a function may be traced more than once.
    draws: dict[Finding, None] = {}
    generator: Any = keras.random.SeedGenerator
    draw = generator.next

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        draws[_finding(str(self.state.path), sys._getframe(1))] = None
        return draw(self, *args, **kwargs)

    generator.next = recorded
    try:
        yield draws
    finally:
        generator.next = draw


def _finding(generator: str, frame: FrameType | None) -> Finding:
    op, place = "keras.random", None
    while frame is not None:
        file, name = frame.f_code.co_filename.replace("\\", "/"), frame.f_code.co_name
        if file.endswith(_RANDOM):
            op = f"keras.random.{name}"
        if file.startswith(_OWN):
            break
        if not _FRAMEWORKS.search(file):
            place = SourceLocation(frame.f_code.co_filename, frame.f_lineno)
            break
        frame = frame.f_back
    return Finding(
        "random_state",
        "warning",
        "op",
        f"{op} draws from the state of {generator}, which is a constant of the program: every call draws the same "
        f"numbers",
        op=op,
        location=place,
        remedy="make the random numbers, or an integer from which they are drawn, an input of the model",
    )
