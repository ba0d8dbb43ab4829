"""Processes in environments of releases: what they answer, and what becomes of them."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.corpus import EXAMPLES, FEATURES
from support.endless_programs import LOOP

import vhlo_tools as vt
from vhlo_tools.releases import (
    PACKAGES,
    Download,
    ReleaseProcess,
    download_of,
    pack_arrays,
    process as process_module,
    unpack_arrays,
)

pytestmark = pytest.mark.releases

OLD, NEW = "jaxlib==0.4.31", "jaxlib==0.8.3"


def saxpy(version: str = "1.0.0") -> bytes:
    return bytes(vt.serialize(EXAMPLES / "saxpy.mlir", version))


@pytest.mark.parametrize("release", ["jaxlib==0.4.13", OLD, NEW, "torch-mlir==20261001"])
def test_a_release_reads_writes_and_runs(release: str) -> None:
    inputs = [np.asarray(np.float32(2)), np.arange(4, dtype=np.float32), np.ones(4, np.float32)]
    with ReleaseProcess(release) as process:
        about = process.describe()
        assert about["packages"]
        assert about["stablehlo"]
        read = process.read(saxpy("0.9.0"), text=True)
        assert read.succeeded
        assert "stablehlo.multiply" in read.value
        written = process.write([b"not a program", saxpy("0.9.0")], "0.10.0", "artifact")
        assert written.succeeded, written
        artifact = vt.open_artifact(written.parts[0])
        assert artifact.version == vt.Version("0.10.0")
        ran = process.run(written.parts[0], pack_arrays(inputs))
        (found,) = unpack_arrays(ran.parts[0])
        assert np.array_equal(found, 2 * np.arange(4) + 1)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_release_writes_text(release: str) -> None:
    with ReleaseProcess(release) as process:
        program = b"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
        written = process.write([program], "0.9.0", "text")
    assert written.succeeded, written
    assert vt.open_artifact(written.parts[0]).version == vt.Version("0.9.0")


@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_refusal_has_the_words_of_the_diagnostics(release: str) -> None:
    with ReleaseProcess(release) as process:
        refused = process.read(bytes(vt.serialize(FEATURES / "async.mlir")))
        assert refused.failed == "read"
        assert "vhlo.async_start_v1" in refused.words or "unknown vhlo" in refused.words, refused.words
        assert process.read(saxpy()).succeeded


def test_what_kills_a_release_is_an_answer_and_the_next_process_goes_on() -> None:
    with ReleaseProcess(OLD) as process:
        killed = process.write([saxpy()], "99999999999999999999.0.0", "artifact")
        assert killed.failed == "crash"
        assert "SIGABRT" in killed.words
        assert "version" in killed.words
        assert process.read(saxpy()).succeeded


def test_what_does_not_end_is_ended() -> None:
    endless = bytes(vt.serialize(LOOP, "1.0.0"))
    with ReleaseProcess(NEW, timeout=8) as process:
        assert process.read(endless).succeeded
        ran = process.run(endless, pack_arrays([np.asarray(np.float32(1))]))
        assert ran.failed == "timeout"
        assert "8 s" in ran.words
        assert process.read(saxpy()).succeeded


def test_memory_is_limited() -> None:
    large = bytes(
        vt.serialize(
            "func.func @main() -> tensor<1000000000xf32> {\n"
            "%0 = stablehlo.iota dim = 0 : tensor<1000000000xf32>\n"
            "return %0 : tensor<1000000000xf32> }",
            "1.0.0",
        )
    )
    with ReleaseProcess(NEW, memory=1 << 30) as process:
        ran = process.run(large, pack_arrays([]))
        assert ran.failed in ("run", "compile", "crash"), ran
        assert process.read(saxpy()).succeeded


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"value": 1}\n',
        b'{"parts": [-1]}\n',
        b'{"parts": [true]}\n',
        b'{"parts": "12"}\n',
        b'{"parts": [99999999999999]}\n',
        b'{"parts": [5]}\nabc',
        b"[" * 100_000 + b"\n",
        b"",
    ],
)
def test_an_answer_is_checked(answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process that a program took over."""
    script = tmp_path / PACKAGES["jaxlib"].server
    script.write_text(f"import sys\nsys.stdin.buffer.readline()\nsys.stdout.buffer.write({answer!r})\n")
    monkeypatch.setattr(process_module, "_INSIDE", tmp_path)
    with ReleaseProcess(NEW) as process:
        answered = process.read(b"")
        assert answered.failed == "crash"
        assert "exit code 0" in answered.words


def test_a_package_that_reads_no_artifacts_is_refused() -> None:
    with pytest.raises(vt.ReleaseEnvironmentError, match=r"packaging==24\.0 does not read artifacts: .* jaxlib"):
        ReleaseProcess("packaging==24.0")


def test_downloads_are_known_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert download_of(OLD).size == 0
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    found = download_of("packaging==24.0")
    assert isinstance(found, Download)
    assert found.size is not None
    assert 10_000 < found.size < 1_000_000
    assert not list(tmp_path.iterdir())


def test_arrays_of_all_types_are_carried() -> None:
    import ml_dtypes

    names = ("bool", "int8", "uint64", "float16", "float64", "complex64", "complex128")
    arrays = [np.ones((2, 3), name) for name in names]
    arrays += [np.ones(3, getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "int4")]
    arrays += [np.zeros((0, 2), np.float32), np.asarray(np.float32(3)), np.arange(12).reshape(3, 4).T]
    found = unpack_arrays(pack_arrays(arrays))
    assert [each.dtype for each in found] == [each.dtype for each in arrays]
    assert all(np.array_equal(one, other) for one, other in zip(found, arrays, strict=True))


def test_threads_ask_one_process_in_turn() -> None:
    with ReleaseProcess(NEW) as process, ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda _: process.read(saxpy(), text=True), range(64)))
    assert all(answer.succeeded and "stablehlo.multiply" in answer.value for answer in read), read


def test_a_limit_may_be_infinite_and_is_a_number() -> None:
    with ReleaseProcess(NEW, timeout=math.inf) as process:
        assert process.read(saxpy()).succeeded
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(vt.ReleaseEnvironmentError, match=r"expected a number of seconds above 0"):
            ReleaseProcess(NEW, timeout=wrong)


def test_a_process_that_is_killed_between_requests_is_started_again() -> None:
    others = servers_of(os.getpid())
    with ReleaseProcess(NEW) as process:
        process.describe()
        (alive,) = servers_of(os.getpid()) - others
        os.kill(alive, signal.SIGKILL)
        assert wait_for(lambda: not is_alive(alive))
        assert process.read(saxpy()).succeeded


def test_one_that_is_stopped_from_another_thread_starts_no_other() -> None:
    others = servers_of(os.getpid())
    with ReleaseProcess(NEW) as process, ThreadPoolExecutor(1) as pool:
        process.describe()
        (alive,) = servers_of(os.getpid()) - others
        running = pool.submit(process.run, bytes(vt.serialize(LOOP, "1.0.0")), pack_arrays([np.asarray(np.float32(1))]))
        time.sleep(1)
        process.stop()
        with pytest.raises(vt.ReleaseEnvironmentError, match="was stopped"):
            running.result(20)
        with pytest.raises(vt.ReleaseEnvironmentError, match="was stopped"):
            process.read(saxpy())
        assert wait_for(lambda: not is_alive(alive))


CALLER = """
import sys
import numpy as np
from pathlib import Path
from vhlo_tools.releases import ReleaseProcess, pack_arrays

process = ReleaseProcess(sys.argv[1])
process.describe()
print(process._child.pid, flush=True)
process.run(Path(sys.argv[2]).read_bytes(), pack_arrays([np.float32(1)]))
"""


def test_a_release_at_work_ends_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    endless = tmp_path / "endless.mlirbc"
    vt.serialize(LOOP, "1.0.0").save(endless)
    with subprocess.Popen([sys.executable, "-c", CALLER, NEW, endless], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        at_work = int(caller.stdout.readline())
        time.sleep(1)
        assert is_alive(at_work)
        caller.kill()
    assert wait_for(lambda: not is_alive(at_work))


#: Starts a process of its own, as IREE starts its compiler, says which, and does not end.
STARTS_ANOTHER = """
import subprocess, sys, time
sys.stdin.buffer.readline()
other = subprocess.Popen(["sleep", "600"])
print(other.pid, file=open(__file__ + ".pid", "w"), flush=True)
time.sleep(600)
"""


def test_what_a_release_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / PACKAGES["jaxlib"].server
    script.write_text(STARTS_ANOTHER)
    monkeypatch.setattr(process_module, "_INSIDE", tmp_path)
    monkeypatch.setattr(process_module, "_START", 8.0)
    with ReleaseProcess(NEW, timeout=1) as process:
        assert process.read(b"").failed == "timeout"
    other = int(Path(f"{script}.pid").read_text())
    assert wait_for(lambda: not is_alive(other))


def servers_of(caller: int) -> set[int]:
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(caller)], capture_output=True, text=True, check=True
    )
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "serve_mlir.py" in line}


def is_alive(process: int) -> bool:
    """Whether a process is there, and is not one that only waits to be reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def archive(
    name: str, shape: str, descr: str = "<u4", data: bytes = b"", compression: int = zipfile.ZIP_STORED
) -> bytes:
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        archive.writestr(name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)
    return written.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        archive("0 float32.npy", "(1099511627776,)"),
        archive("0 float32.npy", "(4294967296, 4294967296)"),
        archive("0 float32.npy", "(-1,)"),
        archive("0 float32.npy", "(1,)", "|O", b"\1" * 8),
        archive("0 O.npy", "(1,)", "<u8", b"\1" * 8),
        archive("0 nonsense.npy", "(1,)", data=b"\1" * 4),
        archive("0.npy", "(1,)", data=b"\1" * 4),
        archive("1 float32.npy", "(1,)", data=b"\1" * 4),
        archive("0 float32.npy", "(1000000,)", data=bytes(4_000_000), compression=zipfile.ZIP_DEFLATED),
        archive("0 float32.npy", "(" * 4000 + ")" * 4000),
    ],
)
def test_archives_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected an archive of arrays"):
        unpack_arrays(data)


def test_an_archive_whose_arrays_are_the_same_bytes_is_refused() -> None:
    """So that a small archive cannot fill the memory."""
    plain = bytearray(archive("0 uint8.npy", "(1000,)", "|u1", bytes(1000)))
    directory = plain.index(b"PK\1\2")
    end = plain.index(b"PK\5\6")
    entries = plain[directory:end] * 3
    tail = bytearray(plain[end:])
    tail[8:10] = tail[10:12] = (3).to_bytes(2, "little")
    tail[12:16] = len(entries).to_bytes(4, "little")
    with pytest.raises(ValueError, match="larger than itself"):
        unpack_arrays(bytes(plain[:directory] + entries + tail))
