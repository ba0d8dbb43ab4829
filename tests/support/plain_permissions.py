"""Processes for which the permissions of files count, even if root runs the tests."""

from __future__ import annotations

#: The beginning of a script: it gives up the capabilities by which root may read and write everything, for itself and
#: for the processes that it starts.
PLAIN = """
import ctypes, os
if os.getuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    drop_from_bounding_set, override, read_search = 24, 1, 2
    for capability in (override, read_search):
        assert libc.prctl(drop_from_bounding_set, capability, 0, 0, 0) == 0, ctypes.get_errno()
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0, ctypes.get_errno()
    for index in range(3):
        sets[index] &= ~(1 << override | 1 << read_search)
    assert libc.capset(header, sets) == 0, ctypes.get_errno()
"""
