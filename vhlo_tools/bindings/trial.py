"""Bytes parsed once, and all of it undone: what a child process does before this process parses them too."""

from __future__ import annotations

import gc

from vhlo_tools.bindings.isolation.notes import wear_out
from vhlo_tools.bindings.provider import MLIRFailure, Provider
from vhlo_tools.bindings.providers import get_provider
from vhlo_tools.findings import Diagnostic

__all__ = ["PARSE_ONCE", "parse_once"]

#: How :func:`parse_once` is named for a child process.
PARSE_ONCE = "vhlo_tools.bindings.trial:parse_once"


def parse_once(prefix: str, data: memoryview, portable: bool) -> None:
    """Parse bytes in a new context, and destroy it, which is where damaged memory is often noticed.

    Args:
        prefix: The provider.
        data: An artifact, or other bytecode.
        portable: Whether it is an artifact.

    Raises:
        MLIRFailure: If the library refuses it.
    """
    said = _refusal(get_provider(prefix), bytes(data), portable)
    # What was raised refers to the context, and to itself.
    gc.collect()
    if said is not None:
        # A reader that refuses has sometimes written past its memory, for which the next file is not to blame.
        wear_out()
        raise MLIRFailure(said)


def _refusal(provider: Provider, data: bytes, portable: bool) -> tuple[Diagnostic, ...] | None:
    context = provider.new_context()
    try:
        if portable:
            provider.deserialize(context, data)
        else:
            provider.parse(context, data)
    except MLIRFailure as failure:
        return failure.diagnostics
    return None
