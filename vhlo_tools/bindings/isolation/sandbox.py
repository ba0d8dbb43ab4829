"""The sandbox of an isolated process: seccomp and Landlock."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from vhlo_tools.records import dataclass

# Landlock rules for a child that starts tools: it writes only in a folder of its own, and runs only those tools
#
# A compiler that calls a linker needs new files and a new process, which the filter of system calls cannot tell from
# any others: it does not see paths. Landlock (landlock(7), Linux 5.13) does, and its rules hold for the tools too.

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


# Seccomp filter of child processes: no new files, no network and no other processes
#
# A program that takes over the interpreter or XLA by a defect of theirs runs with the rights of the user. So a child is
# left with the system calls that computing needs, on Linux for x86-64, by a filter of seccomp(2); all others fail with
# ``EPERM``. The filter holds for all threads, and cannot be removed. A child that starts tools may have new files and
# processes as well, as :mod:`vhlo_tools.bindings.isolation.sandbox` permits, but no network.

#: Whether this system has the filter.
AVAILABLE: Final = sys.platform == "linux" and platform.machine() == "x86_64"

_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2
_ALLOW: Final = 0x7FFF0000
_FAIL: Final = 0x00050000
_KILL: Final = 0x80000000
_ARCHITECTURE: Final = 0xC000003E
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_AT_NUMBER: Final = 0
_AT_ARCHITECTURE: Final = 4
_AT_ARGUMENTS: Final = 16

_CLONE_THREAD: Final = 0x00010000


@dataclass(frozen=True, slots=True)
class _Where:
    """A condition on an argument, of which the low 32 bits count."""

    argument: int  # its position
    values: tuple[int, ...]  # permitted values
    mask: int = 0xFFFFFFFF  # the bits that are compared


#: System calls that may be made with any arguments, by the purpose: on open files, to find files, on memory, between
#: threads, for signals, to end, to wait, on the sockets that are open, and to look at the clock and the process.
#: The numbers are those of asm/unistd_64.h.
_FREE: Final[Mapping[str, int]] = {
    "read": 0,
    "write": 1,
    "readv": 19,
    "writev": 20,
    "pread64": 17,
    "pwrite64": 18,
    "preadv": 295,
    "close": 3,
    "close_range": 436,
    "lseek": 8,
    "fstat": 5,
    "ftruncate": 77,
    "fallocate": 285,
    "dup": 32,
    "dup2": 33,
    "dup3": 292,
    "stat": 4,
    "lstat": 6,
    "newfstatat": 262,
    "statx": 332,
    "fstatfs": 138,
    "statfs": 137,
    "access": 21,
    "faccessat": 269,
    "faccessat2": 439,
    "readlink": 89,
    "readlinkat": 267,
    "getdents64": 217,
    "getcwd": 79,
    "mprotect": 10,
    "munmap": 11,
    "mremap": 25,
    "madvise": 28,
    "brk": 12,
    "msync": 26,
    "mlock": 149,
    "munlock": 150,
    "membarrier": 324,
    "mincore": 27,
    "futex": 202,
    "futex_waitv": 449,
    "set_robust_list": 273,
    "get_robust_list": 274,
    "set_tid_address": 218,
    "rseq": 334,
    "sched_yield": 24,
    "sched_getaffinity": 204,
    "sched_getparam": 143,
    "sched_getscheduler": 145,
    "getcpu": 309,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "sigaltstack": 131,
    "rt_sigtimedwait": 128,
    "restart_syscall": 219,
    "exit": 60,
    "exit_group": 231,
    "poll": 7,
    "ppoll": 271,
    "select": 23,
    "pselect6": 270,
    "epoll_create1": 291,
    "epoll_ctl": 233,
    "epoll_wait": 232,
    "epoll_pwait": 281,
    "eventfd2": 290,
    "recvfrom": 45,
    "recvmsg": 47,
    "sendto": 44,
    "sendmsg": 46,
    "shutdown": 48,
    "getsockopt": 55,
    "getsockname": 51,
    "getpeername": 52,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "nanosleep": 35,
    "gettimeofday": 96,
    "times": 100,
    "getpid": 39,
    "gettid": 186,
    "getppid": 110,
    "getuid": 102,
    "geteuid": 107,
    "getgid": 104,
    "getegid": 108,
    "getrlimit": 97,
    "getrusage": 98,
    "sysinfo": 99,
    "uname": 63,
    "getrandom": 318,
    "arch_prctl": 158,
}

# Of a new file: to create, to truncate or to write it.
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
_SHARED_ANONYMOUS: Final = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS


#: What a child that starts tools, such as a compiler that calls a linker, may do beside: it makes files and processes,
#: and waits for these.
_WITH_TOOLS: Final[Mapping[str, int]] = {
    "open": 2,
    "openat": 257,
    "mmap": 9,  # the linker maps what it writes
    "unlink": 87,
    "unlinkat": 263,
    "rename": 82,
    "renameat": 264,
    "renameat2": 316,
    "memfd_create": 319,
    "pipe": 22,
    "pipe2": 293,
    "fadvise64": 221,
    "umask": 95,
    "getegid": 108,
    "getpgrp": 111,
    "clone": 56,
    "fork": 57,
    "vfork": 58,
    "execve": 59,
    "wait4": 61,
    "waitid": 247,
}


def _limited(process: int) -> dict[int, tuple[_Where, ...]]:
    """Return system calls, by number, that are allowed if one of the conditions on their arguments holds."""
    only_read = _Where(1, (0,), _WRITING)
    return {
        2: (only_read,),  # open
        257: (_Where(2, (0,), _WRITING),),  # openat
        # mmap: memory that is shared with nobody is private; other memory would escape the limit of memory.
        9: tuple(_Where(3, (each,), _SHARED_ANONYMOUS) for each in (0, mmap.MAP_ANONYMOUS, mmap.MAP_SHARED)),
        56: (_Where(0, (_CLONE_THREAD,), _CLONE_THREAD),),  # clone: threads
        62: (_Where(0, (process,)),),  # kill: this process
        234: (_Where(0, (process,)),),  # tgkill: threads of this process
        302: (_Where(2, (0,)),),  # prlimit64: to read a limit
        # fcntl: not to direct signals at others.
        72: (_Where(1, (0, 1, 2, 3, 4, 5, 6, 7, fcntl.F_DUPFD_CLOEXEC, 1033, 1034)),),
        16: (_Where(1, (0x5401, 0x541B, 0x5450, 0x5451, 0x5421)),),  # ioctl: what files are, and their flags
        157: (_Where(0, (3, 15, 16, 0x53564D41)),),  # prctl: names, and whether it can be dumped
    }


def restrict(*, tools: bool = False) -> bool:
    """Restrict this process, and return whether the system can.

    The process must have one thread; later threads are restricted too, as are the processes that ``tools`` permits.
    """
    if not AVAILABLE:
        return False
    code = b"".join(_program(os.getpid(), {**_FREE, **_WITH_TOOLS} if tools else _FREE))
    instructions = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
    done = libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, None, 0, 0) == 0
    return bool(done and libc.prctl(_SET_SECCOMP, _MODE_FILTER, program, 0, 0) == 0)


def _program(process: int, free: Mapping[str, int]) -> Iterator[bytes]:
    yield _instruction(_LOAD, _AT_ARCHITECTURE)
    yield _instruction(_EQUAL, _ARCHITECTURE, 1, 0)
    yield _instruction(_RETURN, _KILL)
    yield _instruction(_LOAD, _AT_NUMBER)
    for number in free.values():
        yield _instruction(_EQUAL, number, 0, 1)
        yield _instruction(_RETURN, _ALLOW)
    for number, conditions in _limited(process).items():
        checks = [each for condition in conditions for each in _check(condition)]
        yield _instruction(_EQUAL, number, 0, len(checks) + 1)
        yield from checks
        yield _instruction(_RETURN, _FAIL | errno.EPERM)
    # Of clone3: glibc falls back to clone, whose flags the filter can see.
    yield _instruction(_EQUAL, 435, 0, 1)
    yield _instruction(_RETURN, _FAIL | errno.ENOSYS)
    yield _instruction(_RETURN, _FAIL | errno.EPERM)


def _check(condition: _Where) -> Iterator[bytes]:
    """Allow the call if the condition holds, and go on otherwise."""
    yield _instruction(_LOAD, _AT_ARGUMENTS + 8 * condition.argument)
    yield _instruction(_AND, condition.mask)
    for value in condition.values:
        yield _instruction(_EQUAL, value, 0, 1)
        yield _instruction(_RETURN, _ALLOW)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
