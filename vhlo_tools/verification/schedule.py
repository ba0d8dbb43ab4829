"""The inputs of consecutive rounds of a verification: other seeds, other scales, and edge cases among them.

A difference shows only for some inputs: behind a saturated ``tanh`` none does, and small inputs do not saturate it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from vhlo_tools.verification.drawing import Drawing

#: Without a number of rounds: at most so many, as far as they are expected to fit into so many seconds after the first
#: round, which compiles the programs.
DEFAULT_ROUNDS: Final = 256
DEFAULT_SECONDS: Final = 2.0

#: The scale of floats in consecutive rounds; a negative one stands for edge cases at scale one.
_SCALES: Final = (1.0, 0.25, -1.0, 4.0, 0.0625, -1.0, 16.0, 0.5)


def drawings(
    drawing: Drawing, rounds: int | None = None, seconds: float = DEFAULT_SECONDS
) -> Iterator[tuple[str, Drawing]]:
    """As many rounds as fit into ``seconds``, but 2 to 256, if there is no number of them.

    The first is drawn with ``drawing`` as it is. Time is taken between rounds, from the end of the first.
    """
    begun = 0.0
    for number in range(DEFAULT_ROUNDS if rounds is None else rounds):
        if number == 1:
            begun = time.monotonic()
        elapsed = time.monotonic() - begun
        if rounds is None and number > 1 and elapsed * number / (number - 1) > seconds:
            return
        scale = _SCALES[number % len(_SCALES)]
        each = replace(
            drawing,
            seed=drawing.seed + number,
            edges=drawing.edges or scale < 0,
            scale=drawing.scale * abs(scale),
        )
        text = f"drawn from seed {each.seed}"
        if each.scale != 1:
            text += f", scale {each.scale:g}"
        yield text + (", with edge cases" if each.edges else ""), each
