"""Takes away from a Python, while it starts, what other systems lack: a Linux that has no more than macOS or Windows.

It stands on the path of the processes of ``tests/test_platforms.py``, and of all that these start.
``VHLO_TOOLS_TEST_SYSTEM`` names the system. This is no macOS and no Windows: file systems, the C library and the MLIR
bindings stay those of Linux. What it shows is that nothing is asked for that is not there.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import mmap
import os
import select
import shutil
import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

#: Names of modules, and of what macOS lacks in them; `man` pages and the availability notes of Python's library say so.
MACOS: dict[Any, tuple[str, ...]] = {
    os: (
        "memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "copy_file_range", "sched_getaffinity", "sched_setaffinity",
        "O_TMPFILE", "O_PATH", "posix_fallocate", "posix_fadvise", "pidfd_open", "eventfd", "splice", "getrandom",
    ),
    mmap: ("MAP_POPULATE",),
    select: ("epoll",),
}  # fmt: skip
#: What Windows lacks beside it.
WINDOWS: dict[Any, tuple[str, ...]] = {
    os: (
        "fork", "forkpty", "register_at_fork", "pread", "pwrite", "preadv", "pwritev",
        "O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "fchmod", "fchown", "chown", "lchown", "getuid",
        "geteuid", "getgid", "getegid", "getpgrp", "getpgid", "killpg", "setsid", "setpgid", "set_blocking",
        "get_blocking", "sysconf", "WIFEXITED", "WEXITSTATUS", "WTERMSIG", "mkfifo", "mknod", "nice", "getloadavg",
    ),
    mmap: ("MAP_SHARED", "MAP_PRIVATE", "MAP_ANONYMOUS", "PROT_READ", "PROT_WRITE", "PROT_EXEC"),
    select: ("poll",),
    signal: (
        "pthread_sigmask", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "SIGHUP", "SIGPIPE", "SIGKILL", "SIGCHLD",
        "SIGUSR1", "SIGALRM", "SIGQUIT", "alarm", "setitimer", "sigwait", "pthread_kill",
    ),
}  # fmt: skip
#: Modules that Windows lacks.
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")
#: Modules of Python's library that ask for some of it when they are imported: on Linux they do what Linux has.
OWN = ("asyncio",)
#: That of Windows; Linux takes it for a flag that it sets by itself.
BINARY = 0x8000


def take_away(names: dict[Any, tuple[str, ...]]) -> None:
    for module, gone in names.items():
        for name in gone:
            if hasattr(module, name):
                delattr(module, name)


def hide_proc() -> None:
    """Let no file below /proc be found."""

    def hiding(function: Any) -> Any:
        def asked(path: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith("/proc"):
                raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
            return function(path, *arguments, **options)

        return asked

    for module, name in (
        (builtins, "open"),
        (io, "open"),
        (os, "open"),
        (os, "stat"),
        (os, "listdir"),
        (os, "readlink"),
    ):
        original = getattr(module, name)
        replaced = hiding(original)
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if original in known:
                known.add(replaced)
        setattr(module, name, replaced)


def refuse_text() -> None:
    """Refuse to open a file as text by a descriptor, which on Windows would change its bytes; and folders."""
    original = os.open

    def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        ours = caller.startswith("vhlo_tools")
        if ours and Path(path).is_dir():
            raise PermissionError(13, "Permission denied", path)
        if ours and not flags & BINARY:
            raise AssertionError(f"{caller} opens {path} without O_BINARY")
        return original(path, flags, *arguments, **options)

    os.O_BINARY = BINARY  # type: ignore[attr-defined]
    os.open = opened


def take_away_the_library() -> None:
    """On Windows there is no library of the whole process, and no call takes a folder that is open."""
    load = ctypes.CDLL.__init__

    def made(self: Any, name: Any, *arguments: Any, **options: Any) -> None:
        if name is None and sys._getframe(1).f_globals.get("__name__", "").startswith("vhlo_tools"):
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        load(self, name, *arguments, **options)

    ctypes.CDLL.__init__ = made  # type: ignore[method-assign]
    os.supports_dir_fd.clear()


class Missing:
    """Finds nothing of some names."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


wanted = os.environ.get("VHLO_TOOLS_TEST_SYSTEM")
if wanted in ("macos", "windows"):
    for name in OWN:
        import_module(name)
    # They looked for this when they were imported.
    tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined]
    take_away(MACOS)
    hide_proc()
    if wanted == "windows":
        shutil._use_fd_functions = False  # type: ignore[attr-defined]
        take_away(WINDOWS)
        for name in MODULES:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, Missing())
        take_away_the_library()
        refuse_text()
