"""Landlock rules for a child that starts tools: it writes only in a folder of its own, and runs only those tools.

A compiler that calls a linker needs new files and a new process, which the filter of system calls cannot tell from any
others: it does not see paths. Landlock (landlock(7), Linux 5.13) does, and its rules hold for the tools too.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from typing import Final

# System calls, of all architectures, and constants of linux/landlock.h.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_REMOVE_FILE: Final = 1 << 5
_MAKE_FILE: Final = 1 << 8
_TRUNCATE: Final = 1 << 14
#: Of the rights that each version added, all except to read files and folders; those that a rule does not grant are
#: denied everywhere.
_HANDLED: Final = {1: 0x1FFF & ~0b1100, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}

_SET_NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)


def confine(folder: str, tools: Iterable[str]) -> bool:
    """Confine this process and its children to a folder and some programs; return whether the system can.

    The process must have one thread; later threads are confined too. Missing ``tools`` (programs or folders) are
    skipped.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    handled = sum(rights for since, rights in _HANDLED.items() if since <= version)
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("Q", handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        rules = [(folder, (_WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE) & handled), (os.devnull, _WRITE_FILE)]
        rules += [(each, _EXECUTE) for each in tools]
        allowed = all(_allow(libc, ruleset, path, rights) for path, rights in rules)
        none_new = libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        return bool(allowed and none_new and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> bool:
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        rule = struct.pack("=Qi", rights, found)
        return bool(libc.syscall(_ADD_RULE, ruleset, _BENEATH, rule, 0) == 0)
    finally:
        os.close(found)
