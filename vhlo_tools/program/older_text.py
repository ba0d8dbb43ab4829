"""Text of an older StableHLO or MLIR, which no current parser reads, and the newest release that does.

StableHLO promises nothing for its text. Attributes that are lists of integers were printed as ``dense`` tensors, and
became arrays in two steps. A release of jaxlib that reads such tensors writes an artifact, which every later one reads.
Measured with the releases 0.4.20 to 0.4.26 (``tests/releases/test_older_text.py``).
"""

from __future__ import annotations

import re
from typing import Final

#: The ops whose lists became arrays first, and the last release that reads them as tensors; and that of the others:
#: `broadcast_in_dim`, `dynamic_broadcast_in_dim`, `gather`, `reduce`, `map`, `reduce_window`, `select_and_scatter`,
#: `convolution`.
_FIRST: Final = re.compile(
    r'"stablehlo\.(?:broadcast|dynamic_slice|fft|pad|reverse|slice|transpose)"\([^)\n]{0,400}\)\s{0,9}\{[^}]{0,400}=\s{0,9}dense<'
)
_BEFORE_THE_FIRST: Final = "jaxlib==0.4.21"
_BEFORE_THE_OTHERS: Final = "jaxlib==0.4.23"
_IS_NO_ARRAY: Final = re.compile(
    r"'stablehlo\.\w{1,99}' op attribute '\w{1,99}' failed to satisfy constraint: i(?:1|64) dense array"
)
#: Functions were ops of the builtin dialect until 2022, before there were artifacts.
_BUILTIN_FUNCTION: Final = re.compile(r"custom op 'func' is unknown|has no custom assembly form.*'func'")


def older_text_advice(text: str, message: str) -> str:
    """Return what to do about text that the parser refuses with a message, if the text is merely old; else nothing.

    >>> older_text_advice("", "'stablehlo.map' op attribute 'dimensions' failed to satisfy constraint: i64 dense array")
    '; it is older text: --read-with jaxlib==0.4.23 (read_with=) has the newest release read it that does'
    """
    if _IS_NO_ARRAY.search(message):
        release = _BEFORE_THE_FIRST if _FIRST.search(text) else _BEFORE_THE_OTHERS
        return f"; it is older text: --read-with {release} (read_with=) has the newest release read it that does"
    if _BUILTIN_FUNCTION.search(message):
        return "; it is text of 2022 or older: no release that reads it writes artifacts, so export the program again"
    return ""
