"""Kind of an MLIR location, in every release of the bindings.

jaxlib has a class for each kind from 0.10.1 on, and before that one class with a question for each.
"""

from __future__ import annotations

from typing import Any, Final, Literal

LocationKind = Literal["call-site", "file", "fused", "name"]

_KINDS: Final[dict[str, LocationKind]] = {
    "CallSiteLoc": "call-site",
    "FileLineColLoc": "file",
    "FusedLoc": "fused",
    "NameLoc": "name",
}
_QUESTIONS: Final[dict[str, LocationKind]] = {
    "is_a_callsite": "call-site",
    "is_a_file": "file",
    "is_a_fused": "fused",
    "is_a_name": "name",
}


def location_kind(location: Any) -> LocationKind | None:
    """Return ``None`` for a kind that is unknown or has no class in the bindings.

    The members of a kind have the same names in all releases: ``filename``, ``start_line`` and ``start_col``;
    ``callee`` and ``caller``; ``locations``; ``name_str`` and ``child_loc``.
    """
    if (kind := _KINDS.get(type(location).__name__)) is not None:
        return kind
    for question, kind in _QUESTIONS.items():
        if hasattr(location, question) and getattr(location, question)():
            return kind
    return None
