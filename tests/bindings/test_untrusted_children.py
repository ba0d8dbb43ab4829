"""Child processes that a hostile program has taken over: what they can send, and what they can do."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.isolation import Limits, call, sandbox

pytestmark = pytest.mark.every_python


def isolated(function: str, *arguments: object, **limits: Any) -> Any:
    return call(f"support.isolated_functions:{function}", *arguments, limits=Limits(**limits) if limits else None)


class Shell:
    """What a pickle can do to its reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.path}",)


def control(message: object) -> bytes:
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(4, "little") + data


def returned(value: object) -> bytes:
    # True: the child is not used again.
    return control([["returned", value], True])


def nested(depth: int) -> bytes:
    head, tail = b"\x92\xa4list\x91", b"\xc0"
    data = b"\x92\x92\xa8returned" + head * depth + tail + b"\xc2"
    return len(data).to_bytes(4, "little") + data


#: Replies that are none, and what is said of each.
REPLIES = {
    "nothing": (b"", "requires a buffer of at least 4 bytes"),
    "a length without what it announces": (b"\xff\xff\xff\xff", "it announces 4294967295 bytes"),
    "a text": (control("hello"), "Expected `array`"),
    "no outcome": (control([]), "Expected `array` of at least length 1"),
    "an unknown outcome": (control([["conquered"], False]), "Invalid value 'conquered'"),
    "that it is ready": (control([["ready"], False]), "it came before"),
    "a request": (control([["asked", 0, ["tuple", []]], False]), "called a function that does not exist"),
    "an unknown error": (control([["raised", ["SystemExit", "0"]], False]), "it names an unknown error"),
    "a class as an error": (control([["raised", ["__import__('os')", "0"]], False]), "it names an unknown error"),
    "a list in a number": (control([["too large", []], False]), "Expected `int`"),
    "ten thousand lists": (nested(10_000), "recursion|depth|Maximum"),
    "an array outside of memory": (returned(["array", "<f4", [1 << 20], [0, 4 << 20, False]]), "there are no"),
    "an array before memory": (returned(["array", "<f4", [1], [-4, 4, False]]), "there are no"),
    "an array of a negative size": (returned(["array", "<f4", [-1], [0, 4, True]]), "an array has the shape"),
    "an array of all there is": (returned(["array", "<f8", [1 << 62] * 9, [0, 4, True]]), "an array has the shape"),
    "an array that is larger": (returned(["array", "<f4", [2], [0, 4, True]]), "an array of float32"),
    "an array of objects": (returned(["array", "|O8", [1], [0, 8, True]]), "is not an element type"),
    "an array of records": (returned(["array", "|V8", [1], [0, 8, True]]), "is not an element type"),
    "an array of a type of another module": (returned(["array", "finfo", [1], [0, 8, True]]), "is not an element type"),
    "a text that is none": (returned(["text", [0, 4, True]]) + b"\xff\xfe\xfd\xfc", "codec can't decode"),
    "keys that are none": (returned(["dict", [["list", []]], [1]]), "unhashable"),
    "more values than keys": (returned(["dict", [1], [1, 2]]), "argument 2 is longer"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_replies_that_are_none(name: str) -> None:
    body, said = REPLIES[name]
    with pytest.raises(vt.EngineCrashError, match=said) as caught:
        isolated("send", body)
    assert "sent a reply that cannot be read" in str(caught.value) or "does not exist" in str(caught.value)
    assert isolated("same", 1) == (1,)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    for body in (
        pickle.dumps(Shell(path)),
        len(pickle.dumps(Shell(path))).to_bytes(4, "little") + pickle.dumps(Shell(path)),
    ):
        with pytest.raises(vt.EngineCrashError, match="sent a reply that cannot be read"):
            isolated("send", body)
    assert not path.exists()


@pytest.mark.parametrize("size", [1 << 30, 1 << 62, (1 << 64) - 1])
def test_a_reply_of_any_size_is_not_awaited(size: int) -> None:
    with pytest.raises(vt.EngineCrashError, match=f"it announces {size} bytes"):
        isolated("announce", size)


def test_results_beyond_the_limit_are_refused_here_too() -> None:
    body = returned(["list", [["bytes", [0, 1000, True]]] * 1000]) + bytes(1000)
    with pytest.raises(vt.EngineCrashError, match="it is larger than the limit of output"):
        isolated("send", body, output=1 << 18)
    assert len(isolated("send", body)) == 1000


def test_errors_are_fit_for_a_terminal() -> None:
    texts = ["\x1b[31mred\n::error::no", "\u202eeman"]
    finding = {"feature": "x", "level": "error", "kind": "op", "message": texts[0], "op": texts[1]}
    body = control([["raised", ["DowngradeError", texts[0], texts, [], [finding]]], True])
    with pytest.raises(vt.DowngradeError) as caught:
        isolated("send", body)
    shown = [str(caught.value), *caught.value.__notes__, *(str(each) for each in caught.value.findings)]
    for text in shown:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\n::" not in text


def test_booleans_are_zero_or_one() -> None:
    (array,) = isolated("send", returned(["list", [["array", "|b1", [4], [0, 4, True]]]]) + b"\0\1\2\xff")
    assert array.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_types_of_findings_are_checked() -> None:
    finding = {"feature": "x", "level": "dire", "kind": "op", "message": "m"}
    body = control([["raised", ["DowngradeError", "m", [], [], [finding]]], False])
    with pytest.raises(vt.EngineCrashError, match="Invalid enum value 'dire'"):
        isolated("send", body)


READING = ["read a file", "list a folder", "read the environment of a process"]
ATTEMPTS = [
    "create a file",
    "write a file",
    "truncate a file",
    "create a file without a name",
    "make a folder",
    "delete a file",
    "rename a file",
    "link a file",
    "change rights",
    "open a file by another call",
    "make a socket",
    "make a socket of this machine",
    "start a process",
    "fork",
    "be another program",
    "signal a process",
    "signal a process through a file",
    "seal memory of the caller",
    "trace a process",
    "write the memory of a process",
    "write its own file of memory",
    "share memory",
    "make a file in memory",
    "queue work for the kernel",
    "raise its limits",
    "take back the filter",
]


@pytest.mark.skipif(not sandbox.AVAILABLE, reason="Landlock is of Linux")
@pytest.mark.parametrize("attempt", READING)
def test_a_child_reads_no_file_of_the_user(attempt: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    assert isolated("try_to", attempt, str(path), os.getpid()) == "PermissionError"


@pytest.mark.skipif(not sandbox.AVAILABLE, reason="the filter is for Linux on x86-64")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_a_child_gave_up(attempt: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if attempt != "create a file":
        path.write_text("text")
    outcome = isolated("try_to", attempt, str(path), os.getpid())
    # setrlimit has an error of its own for EPERM.
    assert outcome == ("ValueError" if attempt == "raise its limits" else "PermissionError")
    assert sorted(each.name for each in tmp_path.iterdir()) == ([] if attempt == "create a file" else ["file"])
    if attempt != "create a file":
        assert path.read_text() == "text"


@pytest.mark.skipif(not sandbox.AVAILABLE, reason="the filter is for Linux on x86-64")
def test_a_child_with_tools_runs_these_and_writes_in_a_folder_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    true = shutil.which("true")
    assert true is not None
    loader = "/lib64/ld-linux-x86-64.so.2"
    worker = isolation.start(tools=[os.path.realpath(each) for each in (true, loader)])
    limits = isolation.Limits(seconds=30)
    try:
        made = worker.call("support.isolated_functions:make_temporary_file", (), limits)
        assert (
            worker.call("support.isolated_functions:try_to", ("start a process", str(path), os.getpid()), limits)
            == "done"
        )
        allowed = {"start a process", "fork", "be another program", "make a file in memory", "share memory"}
        for attempt in sorted(set(ATTEMPTS) - allowed - {"create a file"}):
            said = worker.call("support.isolated_functions:try_to", (attempt, str(path), os.getpid()), limits)
            assert said in ("PermissionError", "ValueError"), attempt
        assert worker.call("support.isolated_functions:start", ("/bin/sh",), limits) == "PermissionError"
    finally:
        worker.end()
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "text"
    assert not Path(made).parent.exists()


def test_shared_memory_has_a_limit() -> None:
    with pytest.raises(vt.EngineError, match="File too large"):
        isolated("fill_shared_memory", 1 << 30, output=1 << 20)
