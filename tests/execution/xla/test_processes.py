"""XLA in child processes: limits, crashes, threads, forks, and what is lost with a process."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.forked_python import ForkedPython

import vhlo_tools as vt
from vhlo_tools.bindings import xla_processes

pytestmark = pytest.mark.every_python

F32 = "tensor<4xf32>"
ADD = f"""func.func @main(%a: {F32} {{tf.aliasing_output = 0 : i32}}) -> {F32} {{
  %0 = stablehlo.add %a, %a : {F32}
  return %0 : {F32}
}}"""
CALL = f"""func.func @main(%a: {F32}) -> {F32} {{
  %0 = stablehlo.custom_call @f(%a) : ({F32}) -> {F32}
  return %0 : {F32}
}}"""
LOOP = (Path(__file__).parents[2] / "programs" / "hostile" / "long_loop.mlir").read_text()
NUMBERS = np.arange(4, dtype=np.float32)


def processes() -> list[int]:
    return [each.worker._process for each in xla_processes._pool._idle if each.worker._process is not None]


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    for _ in range(500):
        if process not in {each for each in processes() if _is_alive(each)}:
            return
        time.sleep(0.01)


def _is_alive(process: int) -> bool:
    return any(each.worker._process == process and each.worker.alive for each in xla_processes._pool._idle)


@pytest.mark.parametrize("engine", ["xla", "auto"])
def test_a_run_that_never_ends_is_ended(engine: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(vt.EngineTimeoutError, match=r"XLA: the child process was terminated after 0\.5 s") as caught:
        vt.run(LOOP, [10**14], engine=engine, timeout=0.5)
    assert time.monotonic() - begun < 20
    assert caught.value.seconds == 0.5
    assert "(timeout=, --timeout)" in str(caught.value)
    assert vt.run(LOOP, [0], engine=engine)[0][0, 0] == 0.5


def test_a_limit_may_be_infinite() -> None:
    assert vt.run(ADD, [NUMBERS], engine="xla", timeout=math.inf)[0].tolist() == [0, 2, 4, 6]


def test_several_devices_have_the_limit_too() -> None:
    with pytest.raises(vt.EngineTimeoutError, match=r"XLA: the child process was terminated after 0\.5 s"):
        vt.run_parallel(LOOP, [[10**14], [10**14]], replicas=2, engine="xla", timeout=0.5)


def test_comparisons_and_recordings_have_the_limit_too(tmp_path: Path) -> None:
    with pytest.raises(vt.EngineTimeoutError):
        vt.verify(LOOP, LOOP, [10**14], engine="xla", timeout=0.3)
    with pytest.raises(vt.EngineTimeoutError):
        vt.record_golden(tmp_path, LOOP, [10**14], name="loop", timeout=0.3)
    assert not list(tmp_path.iterdir())
    vt.record_golden(tmp_path, LOOP, [100_000], name="loop", engine="xla")
    (replayed,) = vt.check_golden(tmp_path, timeout=0.2)
    assert not replayed.passed
    assert "terminated after 0.2 s" in str(replayed.problem)


def test_memory_beyond_the_limit_is_an_error() -> None:
    large = "tensor<4x1073741824xf32>"
    program = f"""func.func @main(%a: tensor<f32>) -> {large} {{
      %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> {large}
      return %0 : {large}
    }}"""
    with pytest.raises(vt.EngineError, match="memory|allocat"):
        vt.run(program, [1.0], engine="xla")
    assert vt.run(ADD, [NUMBERS], engine="xla")[0].tolist() == [0, 2, 4, 6]


def test_a_crash_is_an_error_and_the_program_is_compiled_again() -> None:
    executable = vt.load_executable(CALL, engine="xla", handlers={"f": lambda call, array: die(array)})
    with pytest.raises(vt.EngineCrashError, match="XLA: the child process crashed with SIGKILL while at execution of"):
        executable.run([NUMBERS])
    alive = vt.load_executable(CALL, engine="xla", handlers={"f": lambda call, array: array + 1})
    assert alive.run([NUMBERS])[0].tolist() == [1, 2, 3, 4]
    (process,) = processes()[-1:]
    kill(process)
    assert alive.run([NUMBERS])[0].tolist() == [1, 2, 3, 4]


def die(array: Any) -> Any:
    """Kill the child that waits for this handler."""
    (busy,) = xla_processes._pool._busy
    assert busy.worker._process is not None
    os.kill(busy.worker._process, signal.SIGKILL)
    return array


def test_buffers_end_with_their_process() -> None:
    executable = vt.load_executable(ADD, engine="xla")
    lost, read = (executable.execute([NUMBERS]).buffers[0] for _ in range(2))
    values = np.asarray(read)
    for process in processes():
        kill(process)
    for use in (np.asarray, lambda each: executable.execute([each])):
        with pytest.raises(vt.BufferDeletedError, match="the process of XLA that held this buffer has ended"):
            use(lost)
    # What was read before is an array of this process.
    assert values.tolist() == np.asarray(read).tolist() == [0, 2, 4, 6]
    assert executable.run([NUMBERS])[0].tolist() == [0, 2, 4, 6]


def test_programs_and_buffers_are_released() -> None:
    executable = vt.load_executable(ADD, engine="xla")
    kept = executable.execute([NUMBERS]).buffers[0]
    (process,) = (each for each in xla_processes._pool._idle if each is kept.device.process)
    before, arrays = set(process.programs), process.arrays
    for _ in range(20):
        other = vt.load_executable(ADD.replace("add", "multiply"), engine="xla")
        buffer = other.execute([kept]).buffers[0]
    del other, buffer
    gc.collect()
    executable.execute([kept])
    assert process.programs == before
    assert process.arrays <= arrays + 1


def test_a_buffer_of_the_program_that_waits_for_a_handler() -> None:
    buffer = vt.load_executable(ADD, engine="xla").execute([NUMBERS]).buffers[0]
    executable = vt.load_executable(CALL, engine="xla", handlers={"f": lambda call, array: np.asarray(buffer)})
    # The first execution is where the buffer is.
    with pytest.raises(vt.EngineError, match="a handler uses a buffer on the device of the program that is waiting"):
        executable.execute([buffer])


def test_handlers_may_run_programs_deeply() -> None:
    def handler(depth: int) -> Any:
        def compute(call: vt.CustomCall, array: Any) -> Any:
            if depth:
                return vt.run(CALL, [array + 1], engine="xla", handlers={"f": handler(depth - 1)})[0]
            return array

        return compute

    result = vt.run(CALL, [NUMBERS], engine="xla", handlers={"f": handler(10)})
    assert result[0].tolist() == [10, 11, 12, 13]


def _many_processes_with_arrays() -> list[vt.Buffer]:
    kept: list[vt.Buffer] = []

    def handler(depth: int) -> Any:
        def call(call: vt.CustomCall, array: Any) -> Any:
            kept.append(vt.load_executable(ADD, engine="xla").execute([array]).buffers[0])
            if not depth:
                return array
            return vt.run(CALL, [array], engine="xla", handlers={"f": handler(depth - 1)})[0]

        return call

    vt.run(CALL, [NUMBERS], engine="xla", handlers={"f": handler(xla_processes._MOST + 2)})
    return kept


def test_many_threads_and_few_processes() -> None:
    kept = _many_processes_with_arrays()
    assert len(processes()) > xla_processes._MOST
    del kept
    gc.collect()
    executable = vt.load_executable(ADD, engine="xla")

    def run(number: int) -> float:
        buffer = executable.execute([NUMBERS + number]).buffers[0]
        return float(executable.execute([buffer], donate=(0,)).outputs[0][0])

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(run, range(100))) == [4.0 * number for number in range(100)]
    # A child is kept as long as an array is on it, which a thread may have let go of last: it ends with its next run.
    for _ in processes():
        run(0)
    assert len(processes()) <= xla_processes._MOST


def test_an_interrupt_ends_the_run() -> None:
    def handler(call: vt.CustomCall, array: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vt.run(CALL, [NUMBERS], engine="xla", handlers={"f": handler})
    assert vt.run(ADD, [NUMBERS], engine="xla")[0].tolist() == [0, 2, 4, 6]


PROLOGUE = f"""
import os, sys, threading
import numpy as np
import vhlo_tools as vt
ADD = {ADD!r}
NUMBERS = np.arange(4, dtype=np.float32)
"""


Python = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkedPython]:
    """A Python that has imported no more of this package than its names."""
    options = ("-W", "error", "-W", "ignore::DeprecationWarning")
    with ForkedPython(PROLOGUE, options=options, whole_end=True) as forked:
        yield forked


@pytest.fixture
def python(server: ForkedPython) -> Python:
    """Returns what runs code in a process of its own, and returns what that prints."""

    def run(code: str, *arguments: str) -> str:
        done = server.run(PROLOGUE + code, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", ["engine='xla'", "engine='xla', in_process=True", "engine='reference'"])
def test_the_first_use_is_of_eight_threads(options: str, python: Python) -> None:
    code = f"""
barrier, results = threading.Barrier(8), []
def run(number):
    barrier.wait()
    executable = vt.load_executable(ADD, {options})
    results.append(float(executable.run([NUMBERS + number])[0][0]))
threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(sorted(results))
"""
    assert python(code) == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["xla", "reference"])
def test_a_fork_starts_anew(engine: str, python: Python) -> None:
    code = """
executable = vt.load_executable(ADD, engine=sys.argv[1])
buffer = executable.execute([vt.Buffer(NUMBERS)]).buffers[0]
if (child := os.fork()) == 0:
    print(vt.run(ADD, [NUMBERS], engine=sys.argv[1])[0].tolist(), executable.run([NUMBERS])[0].tolist())
    try:
        print(np.asarray(buffer).tolist())
    except vt.BufferDeletedError:
        print("deleted")
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(np.asarray(buffer).tolist(), executable.run([NUMBERS])[0].tolist())
"""
    *fork, original = python(code, engine).splitlines()
    assert fork == ["[0.0, 2.0, 4.0, 6.0] [0.0, 2.0, 4.0, 6.0]", "deleted" if engine == "xla" else original[:20]]
    assert original == "[0.0, 2.0, 4.0, 6.0] [0.0, 2.0, 4.0, 6.0]"


def test_a_fork_of_a_process_with_xla_says_so(python: Python) -> None:
    code = """
executable = vt.load_executable(ADD, engine="xla", in_process=True)
executable.run([NUMBERS])
if (child := os.fork()) == 0:
    try:
        vt.load_executable(ADD.replace("add", "multiply"), engine="xla", in_process=True).run([NUMBERS])
    except vt.EngineError as error:
        print(str(error).partition(":")[0])
    print(vt.run(ADD, [NUMBERS], engine="xla")[0].tolist())
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    assert python(code).splitlines() == [
        "this process was forked after XLA had been used in_process, and cannot use it",
        "[0.0, 2.0, 4.0, 6.0]",
    ]


def test_nothing_is_left_of_a_program_that_is_killed() -> None:
    code = """
from vhlo_tools.bindings import xla_processes
vt.run(ADD, [NUMBERS], engine="xla")
print(xla_processes._pool._idle[0].worker._process, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    process = Path(f"/proc/{int(done.stdout)}")
    for _ in range(500):
        if not process.exists():
            return
        time.sleep(0.01)
    raise AssertionError("the child is still there")


def test_threads_are_not_needed_for_another_thread_to_wait() -> None:
    """A thread waits for the process that has its buffer while another runs a program there."""
    executable = vt.load_executable(ADD, engine="xla")
    buffer = executable.execute([NUMBERS]).buffers[0]
    started, go = threading.Event(), threading.Event()

    def handler(call: vt.CustomCall, array: Any) -> Any:
        started.set()
        go.wait(30)
        return array

    slow = vt.load_executable(CALL, engine="xla", handlers={"f": handler})
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(slow.execute, [buffer])
        assert started.wait(30)
        second = threads.submit(executable.execute, [buffer])
        time.sleep(0.1)
        assert not second.done()
        go.set()
        assert second.result(30).outputs[0].tolist() == [0, 4, 8, 12]
        assert first.result(30).outputs[0].tolist() == [0, 2, 4, 6]
