"""Text of an older StableHLO or MLIR, which no current parser reads, and the newest release that does.

StableHLO promises nothing for its text. Attributes that are lists of integers were printed as ``dense`` tensors, and
became arrays in two steps. A release of jaxlib that reads such tensors writes an artifact, which every later one reads.
Measured with the releases 0.4.20 to 0.4.26 (``tests/releases/test_older_text.py``).
"""

from __future__ import annotations

import re
from typing import Final

#: Text of the last release that has lists of these ops as tensors has no arrays of integers yet. The lists of others
#: (`broadcast_in_dim`, `dynamic_broadcast_in_dim`, `gather`, `reduce`, `map`, `reduce_window`, `select_and_scatter`,
#: `convolution`) became arrays after them.
_FIRST: Final = re.compile(r"stablehlo\.(?:broadcast|dynamic_slice|fft|pad|reverse|slice|transpose)[\"']")
_ARRAY: Final = "array<i64"
_BEFORE_THE_FIRST: Final = "jaxlib==0.4.21"
_BEFORE_THE_OTHERS: Final = "jaxlib==0.4.23"
_IS_NO_ARRAY: Final = re.compile(
    r"'stablehlo\.\w{1,99}' op attribute '\w{1,99}' failed to satisfy constraint: i(?:1|64) dense array"
)
#: Functions were ops of the builtin dialect until 2022, before there were artifacts.
_BUILTIN_FUNCTION: Final = "custom op 'func' is unknown"


def older_text_advice(text: str, message: str) -> str:
    """Return what to do about text that the parser refuses with a message, if the text is merely old; else nothing.

    >>> older_text_advice("", "'stablehlo.map' op attribute 'dimensions' failed to satisfy constraint: i64 dense array")
    '; it is older text: --read-with jaxlib==0.4.23 (read_with=) has the newest release read it that does'
    """
    if _IS_NO_ARRAY.search(message):
        # Of the op that is refused, or of another one.
        is_first = _FIRST.search(message) or (_ARRAY not in text and _FIRST.search(text))
        release = _BEFORE_THE_FIRST if is_first else _BEFORE_THE_OTHERS
        return f"; it is older text: --read-with {release} (read_with=) has the newest release read it that does"
    if _BUILTIN_FUNCTION in message:
        return "; it is text of 2022 or older: no release that reads it writes artifacts, so export the program again"
    return ""
