"""Calls in warm child processes with limits: what ends, hangs or fills a process there does no harm here.

``call("package.module:function", ...)`` is all of it. The function runs in a process that was forked from one which has
imported the bindings and nothing else, and that is kept for the next call.
"""

from vhlo_tools.bindings.isolation.limits import MEMORY, OUTPUT, SECONDS, Limits
from vhlo_tools.bindings.isolation.notes import note, wear_out
from vhlo_tools.bindings.isolation.pool import AVAILABLE, call, close, warm

__all__ = ["AVAILABLE", "MEMORY", "OUTPUT", "SECONDS", "Limits", "call", "close", "note", "warm", "wear_out"]
