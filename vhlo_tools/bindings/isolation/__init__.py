"""Calls in warm child processes with limits: a crash, a hang or memory exhaustion there does not affect the caller.

The entry point is ``call("package.module:function", ...)``. The function runs in a child that was forked from a process
which has imported only the bindings, and the child is kept for later calls.
"""

from vhlo_tools.bindings.isolation.limits import Limits, become_child, in_child, note, retire_after_call
from vhlo_tools.bindings.isolation.pool import AVAILABLE, MISSING, KeptData, Pool, call, close, start, warm

__all__ = ["AVAILABLE", "MISSING", "KeptData", "Limits", "Pool"]
__all__ += ["become_child", "call", "close", "in_child", "note", "retire_after_call", "start", "warm"]
