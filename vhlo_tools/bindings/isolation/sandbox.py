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
from pathlib import Path
from typing import Final

from vhlo_tools.records import dataclass

#: Whether this system has the filter.
AVAILABLE: Final = sys.platform == "linux" and platform.machine() == "x86_64"

# Landlock rules for a child that starts tools: it writes only in a folder of its own, and runs only those tools
#
# A compiler that calls a linker needs new files and a new process, which the filter of system calls cannot tell from
# any others: it does not see paths. Landlock (landlock(7), Linux 5.13) does, and its rules hold for the tools too.

# System calls, of all architectures, and constants of linux/landlock.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 0, 1 << 1, 1 << 5, 1 << 8, 1 << 14
_READ_FILE: Final = 1 << 2
_READ: Final = _READ_FILE | 1 << 3  # of folders, too
#: Of the rights that each version added, all except to read files and folders; those that a rule does not grant are
#: denied everywhere.
_HANDLED: Final = {1: 0x1FFF & ~0b1100, 2: 1 << 13, 3: _TRUNCATE, 5: 1 << 15}

#: What libraries read beside themselves: the loader's and the C library's files, and what the kernel says of the
#: machine and of this process, but of no other.
_OF_SYSTEM: Final = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/sys", "/proc/self"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys", "/proc/filesystems", "/proc/version"),
    *("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"),
)

_SET_NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)


def confine(folder: str, tools: Iterable[str]) -> bool:
    """Confine this process and its children to a folder and some programs; return whether the system can.

    The process must have one thread; later threads are confined too. Missing ``tools`` (programs or folders) are
    skipped.
    """
    rules = [(folder, _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE), (os.devnull, _WRITE_FILE)]
    return _enforce(_HANDLED, [*rules, *((each, _EXECUTE) for each in tools)])


def confine_reading() -> bool:
    """Let this process read what Python and the libraries need, and no other file; return whether the system can.

    That is what Python is installed in, what it and the loader would load from, this package, wherever it was imported
    from, and what the system has for all programs.
    """
    searched = [*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep), str(Path(__file__).parents[2])]
    paths = dict.fromkeys([sys.prefix, sys.base_prefix, *map(os.path.realpath, filter(None, searched)), *_OF_SYSTEM])
    return _enforce({1: _READ}, [(each, _READ if Path(each).is_dir() else _READ_FILE) for each in paths])


def _enforce(handled: Mapping[int, int], rules: Iterable[tuple[str, int]]) -> bool:
    """Deny the rights that each version of Landlock ``handled``, except beneath the paths of the rules."""
    if not (AVAILABLE and hasattr(os, "O_PATH")):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    denied = sum(rights for since, rights in handled.items() if since <= version)
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("Q", denied), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        allowed = all(_allow(libc, ruleset, path, rights & denied) for path, rights in rules)
        none_new = libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        return bool(allowed and none_new and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> bool:
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return True  # there is none, or it cannot be opened anyway
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

_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_ARCHITECTURE: Final = 0xC000003E
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_CLONE_THREAD: Final = 0x00010000


@dataclass(frozen=True, slots=True)
class _Where:
    """A condition on an argument, of which the low 32 bits count."""

    argument: int  # its position
    values: tuple[int, ...]  # permitted values
    mask: int = 0xFFFFFFFF  # the bits that are compared


#: The numbers of the system calls that may be made with any arguments, as in asm/unistd_64.h.
_FREE: Final = (
    # On open files: read, write, readv, writev, pread64, pwrite64, preadv, close, close_range, lseek, fstat, ftruncate,
    # fallocate, dup, dup2, dup3.
    *(0, 1, 19, 20, 17, 18, 295, 3, 436, 8, 5, 77, 285, 32, 33, 292),
    # To find files: stat, lstat, newfstatat, statx, fstatfs, statfs, access, faccessat, faccessat2, readlink,
    # readlinkat, getdents64, getcwd.
    *(4, 6, 262, 332, 138, 137, 21, 269, 439, 89, 267, 217, 79),
    # On memory: mprotect, munmap, mremap, madvise, brk, msync, mlock, munlock, membarrier, mincore.
    *(10, 11, 25, 28, 12, 26, 149, 150, 324, 27),
    # Between threads: futex, futex_waitv, set_robust_list, get_robust_list, set_tid_address, rseq, sched_yield,
    # sched_getaffinity, sched_getparam, sched_getscheduler, getcpu.
    *(202, 449, 273, 274, 218, 334, 24, 204, 143, 145, 309),
    # For signals: rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack, rt_sigtimedwait, restart_syscall.
    *(13, 14, 15, 131, 128, 219),
    # To end: exit, exit_group.
    *(60, 231),
    # To wait: poll, ppoll, select, pselect6, epoll_create1, epoll_ctl, epoll_wait, epoll_pwait, eventfd2.
    *(7, 271, 23, 270, 291, 233, 232, 281, 290),
    # On open sockets: recvfrom, recvmsg, sendto, sendmsg, shutdown, getsockopt, getsockname, getpeername.
    *(45, 47, 44, 46, 48, 55, 51, 52),
    # To look at the clock: clock_gettime, clock_getres, clock_nanosleep, nanosleep, gettimeofday, times.
    *(228, 229, 230, 35, 96, 100),
    # To look at the process: getpid, gettid, getppid, getuid, geteuid, getgid, getegid, getrlimit, getrusage, sysinfo,
    # uname, getrandom, arch_prctl.
    *(39, 186, 110, 102, 107, 104, 108, 97, 98, 99, 63, 318, 158),
)

# Of a new file: to create, to truncate or to write it.
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
_SHARED_ANONYMOUS: Final = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS

# open, openat, mmap, unlink, unlinkat, rename, renameat, renameat2, memfd_create, pipe, pipe2, fadvise64, umask.
_MAKING: Final = (2, 257, 9, 87, 263, 82, 264, 316, 319, 22, 293, 221, 95)

#: What a process that writes files of the user may do beside: link, linkat, mkdir, mkdirat, rmdir, chdir, chmod,
#: fchmod, fchmodat, fsync, fdatasync; and limit its time: setitimer.
_WITH_FILES: Final = (*_MAKING, 86, 265, 83, 258, 84, 80, 90, 91, 268, 74, 75, 38)

#: What a child that starts tools, such as a compiler that calls a linker, may do beside: it makes files, which the
#: linker maps, and processes, and waits for these: getpgrp, clone, fork, vfork, execve, wait4, waitid.
_WITH_TOOLS: Final = (*_MAKING, 111, 56, 57, 58, 59, 61, 247)


def _limited(process: int) -> dict[int, tuple[_Where, ...]]:
    """Return system calls, by number, that are allowed if one of the conditions on their arguments holds."""
    return {
        2: (_Where(1, (0,), _WRITING),),  # open
        257: (_Where(2, (0,), _WRITING),),  # openat
        # mmap: memory that is shared with nobody is private; other memory would escape the limit of memory.
        9: tuple(_Where(3, (each,), _SHARED_ANONYMOUS) for each in (0, mmap.MAP_ANONYMOUS, mmap.MAP_SHARED)),
        56: (_Where(0, (_CLONE_THREAD,), _CLONE_THREAD),),  # clone: threads
        62: (_Where(0, (process,)),),  # kill: this process
        234: (_Where(0, (process,)),),  # tgkill: threads of this process
        302: (_Where(2, (0,)),),  # prlimit64: to read a limit
        # fcntl: not to direct signals at others, nor to seal memory that the caller writes.
        72: (_Where(1, (*range(8), fcntl.F_DUPFD_CLOEXEC, fcntl.F_GET_SEALS)),),
        16: (_Where(1, (0x5401, 0x541B, 0x5450, 0x5451, 0x5421)),),  # ioctl: what files are, and their flags
        157: (_Where(0, (3, 15, 16, 0x53564D41)),),  # prctl: names, and whether it can be dumped
    }


def restrict(*, tools: bool = False, files: bool = False) -> bool:
    """Restrict this process, and return whether the system can.

    The process must have one thread; later threads are restricted too, as are the processes that ``tools`` permits.
    With ``files``, it may write and make some.
    """
    if not AVAILABLE:
        return False
    beside = _WITH_TOOLS if tools else _WITH_FILES if files else ()
    code = b"".join(_program(os.getpid(), (*_FREE, *beside)))
    instructions = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
    done = libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, None, 0, 0) == 0
    return bool(done and libc.prctl(_SET_SECCOMP, _MODE_FILTER, program, 0, 0) == 0)


def _program(process: int, free: Iterable[int]) -> Iterator[bytes]:
    yield from (_do(_LOAD, _AT_ARCHITECTURE), _do(_EQUAL, _ARCHITECTURE, 1, 0), _do(_RETURN, _KILL))
    yield _do(_LOAD, _AT_NUMBER)
    for number in free:
        yield from (_do(_EQUAL, number, 0, 1), _do(_RETURN, _ALLOW))
    for number, conditions in _limited(process).items():
        checks = [each for condition in conditions for each in _check(condition)]
        yield from (_do(_EQUAL, number, 0, len(checks) + 1), *checks, _do(_RETURN, _FAIL | errno.EPERM))
    # Of clone3: glibc falls back to clone, whose flags the filter can see.
    yield from (_do(_EQUAL, 435, 0, 1), _do(_RETURN, _FAIL | errno.ENOSYS), _do(_RETURN, _FAIL | errno.EPERM))


def _check(condition: _Where) -> Iterator[bytes]:
    """Allow the call if the condition holds, and go on otherwise."""
    yield from (_do(_LOAD, _AT_ARGUMENTS + 8 * condition.argument), _do(_AND, condition.mask))
    for value in condition.values:
        yield from (_do(_EQUAL, value, 0, 1), _do(_RETURN, _ALLOW))


def _do(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
