"""Trial parsing of bytes in a child process, before this process parses them too."""

from __future__ import annotations

import gc
import threading
from typing import Final

from vhlo_tools.bindings.isolation.limits import retire_after_call
from vhlo_tools.bindings.provider import MLIRFailure, Provider
from vhlo_tools.bindings.providers import get_provider
from vhlo_tools.findings import Diagnostic

# The stack of a trial, in bytes; threads of Python have 8 MiB by default.
_STACK: Final = 4 << 20

# The largest file that is printed too, in bytes: printing takes several times as long as reading.
_PRINTED: Final = 1 << 14

#: The name of :func:`parse_once` for calls in a child process.
PARSE_ONCE = "vhlo_tools.bindings.parse_check:parse_once"

#: What a trial does, as a number: one that does more makes those of before count no longer.
TRIAL: Final = 1


def parse_once(prefix: str, data: memoryview, portable: bool) -> None:
    """Parse in a new context, write the module, and destroy the context, which often reveals memory corruption."""
    refusals: list[tuple[Diagnostic, ...] | None] = []
    provider, whole = get_provider(prefix), bytes(data)
    # The parsers recurse, and this process has less stack than a thread of the caller, which may have used some.
    threading.stack_size(_STACK)
    thread = threading.Thread(target=lambda: refusals.append(_refusal(provider, whole, portable)))
    thread.start()
    thread.join()
    (said,) = refusals
    # The exception is part of a reference cycle that keeps the context alive.
    gc.collect()
    if said is not None:
        # A reader that fails may have written out of bounds; another process must read the next file.
        retire_after_call()
        raise MLIRFailure(said)


def read_again(prefix: str, data: memoryview, portable: bool, unregistered: bool, passes: str | None) -> None:
    """Read what the caller could not, or could not convert; an ``MLIRFailure`` has MLIR's diagnostics."""
    provider = get_provider(prefix)
    retire_after_call()
    context = provider.new_context()
    context.allow_unregistered_dialects = unregistered
    module = provider.deserialize(context, bytes(data)) if portable else provider.parse(context, bytes(data))
    if passes is not None:
        provider.run_passes(module, passes, verify=True)


def _refusal(provider: Provider, data: bytes, portable: bool) -> tuple[Diagnostic, ...] | None:
    context = provider.new_context()
    try:
        module = provider.deserialize(context, data) if portable else provider.parse(context, data)
        # Some values are read without error, and crash the writer or the printer.
        provider.bytecode(module, provider.library.current)
        if len(data) <= _PRINTED:
            provider.text(module)
    except MLIRFailure as failure:
        return failure.diagnostics
    return None
