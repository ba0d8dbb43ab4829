"""Calls in child processes: what crosses, what becomes of those that fail, and when a child is used again."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.isolated_functions import DIAGNOSTIC, ERRORS

import vhlo_tools as vt
from vhlo_tools.bindings.isolation import Limits, call, close, note

pytestmark = pytest.mark.every_python

LARGE = 100_000
DTYPES = ["bool", "int8", "uint64", ">i4", "float16", "float64", "complex64"]
DTYPES_OF_ML = ["bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "int4", "uint2", "float4_e2m1fn"]


def isolated(function: str, *arguments: object, **limits: Any) -> Any:
    return call(f"support.isolated_functions:{function}", *arguments, limits=Limits(**limits) if limits else None)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3), (LARGE,)])
@pytest.mark.parametrize("dtype", [*DTYPES, *DTYPES_OF_ML])
def test_arrays_of_any_dtype_and_shape_cross_both_ways(dtype: str, shape: tuple[int, ...]) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.arange(int(np.prod(shape)) * kind.itemsize, dtype=np.uint8)
    array = (array % 2).view(kind).reshape(shape)
    ((back,),) = isolated("same", [array])
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


def test_arrays_with_gaps_and_other_orders_cross() -> None:
    base = np.arange(60_000, dtype=np.float32).reshape(200, 300)
    for array in (base[::3, ::-2], base.T, np.asfortranarray(base), np.broadcast_to(base[0], (50, 300))):
        assert np.array_equal(isolated("same", array)[0], array)


def test_plain_values_and_views_cross() -> None:
    values = (1, "text", "long" * 5000, b"bytes", {"key": [None, 2.5], (1, 2): True}, DIAGNOSTIC, -(2**63))
    assert isolated("same", *values) == values
    assert isolated("same", "\ud800") == ("\\ud800",)
    for size in (0, 10, LARGE):
        data = os.urandom(size)
        assert bytes(isolated("same", memoryview(data))[0]) == data


def test_results_are_the_callers_own_and_arguments_are_read_only_in_the_child() -> None:
    first = isolated("same", np.full(LARGE, 1.0))[0]
    isolated("same", np.full(LARGE, 2.0))
    assert (first == 1.0).all()
    assert isolated("are_writable", [np.zeros(1), np.zeros(LARGE)]) == [False, False]


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="an array of object cannot be passed to another process"):
        isolated("same", np.array([object()]))
    assert isolated("same", 1) == (1,)


@pytest.mark.parametrize("index", range(len(ERRORS)), ids=lambda index: type(ERRORS[index]).__name__)
def test_errors_of_the_toolkit_arrive_whole(index: int) -> None:
    expected = ERRORS[index]
    with pytest.raises(type(expected)) as caught:
        isolated("fail", index)
    assert type(caught.value) is type(expected)
    assert str(caught.value) == str(expected)
    assert caught.value.args == expected.args
    assert caught.value.__dict__ == expected.__dict__


def test_every_error_of_the_toolkit_is_tried() -> None:
    names = {name for name in vt.__all__ if name.endswith("Error")}
    assert names <= {type(error).__name__ for error in ERRORS}
    for error in ERRORS:
        assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__


def test_other_exceptions_arrive_with_their_traceback() -> None:
    with pytest.raises(
        vt.EngineError, match=r"fail_in_python failed in the child process while at .*: KeyError: "
    ) as e:
        isolated("fail_in_python")
    assert 'raise KeyError("weights")' in e.value.__notes__[0]
    with pytest.raises(vt.EngineError, match="StubbornError: 1 2"):
        isolated("fail_stubbornly")
    with pytest.raises(vt.EngineError, match="SystemExit: 3"):
        isolated("leave")
    with pytest.raises(vt.EngineError, match="ModuleNotFoundError: No module named 'no_such_module'"):
        call("no_such_module:function")


def test_one_that_aborts_leaves_its_signal_op_and_last_words() -> None:
    with pytest.raises(vt.EngineCrashError) as caught:
        isolated("abort")
    error = caught.value
    assert (error.signal, error.exit_code, error.op) == ("SIGABRT", None, "stablehlo.divide at model.py:3:4")
    assert error.output.endswith("LLVM ERROR: unreachable")
    assert len(error.output) <= 1 << 14
    assert str(error).startswith("the child process crashed with SIGABRT while at stablehlo.divide at model.py:3:4")
    assert str(error).endswith("LLVM ERROR: unreachable")
    assert isolated("same", 1) == (1,)


@pytest.mark.parametrize(
    ("function", "name", "code", "said"),
    [
        ("read_null", "SIGSEGV", None, ""),
        ("corrupt_heap", "SIGABRT", None, "double free"),
        ("exit_at_once", None, 7, ""),
        ("garble", None, None, ""),
    ],
)
def test_ways_to_die(function: str, name: str | None, code: int | None, said: str) -> None:
    with pytest.raises(vt.EngineCrashError) as caught:
        isolated(function)
    assert (caught.value.signal, caught.value.exit_code, caught.value.op) == (name, code, None)
    assert said in caught.value.output
    assert isolated("same", 1) == (1,)


def test_one_that_never_ends_is_ended() -> None:
    with pytest.raises(vt.EngineTimeoutError, match=r"terminated after 0\.2 s while at stablehlo\.while") as caught:
        isolated("hang", seconds=0.2)
    assert (caught.value.seconds, caught.value.op) == (0.2, "stablehlo.while")
    assert isolated("same", 1) == (1,)


def test_memory_beyond_the_limit() -> None:
    with pytest.raises(vt.EngineError, match=r"ran out of memory; the limit of a call is 64\.0 MiB \(67108864 bytes\)"):
        isolated("take_memory", 100 << 20, memory=64 << 20)
    assert isolated("take_memory", 50 << 20, memory=64 << 20) == 50 << 20
    with pytest.raises(
        vt.EngineCrashError, match=r"crashed with SIGABRT: it ran out of memory; the limit of a call is 64\.0 MiB"
    ):
        isolated("abort_without_memory", memory=64 << 20)


def test_results_beyond_the_limit() -> None:
    with pytest.raises(vt.EngineError, match=r"the results are 1\.0 MiB .* the limit is 512\.0 KiB"):
        isolated("zeros", 1 << 20, output=1 << 19)
    assert isolated("zeros", 1 << 18, output=1 << 19).shape == (1 << 18,)
    assert isolated("zeros", 1 << 20, seconds=None, memory=None, output=None).shape == (1 << 20,)


def test_what_a_child_writes_stays_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert isolated("talk") == "said"
    with pytest.raises(vt.EngineCrashError):
        isolated("abort")
    assert capfd.readouterr() == ("", "")


def test_a_child_is_used_again_until_it_is_worn_out() -> None:
    first = isolated("process")
    assert isolated("process") == first
    with pytest.raises(vt.InvalidVersionError):
        isolated("fail", 1)
    assert isolated("tire") == first
    assert isolated("process") != first
    large = isolated("hold", 520 << 20)
    assert isolated("process") != large
    # What a driver takes at its start stays.
    settled = isolated("hold_from_now", 520 << 20)
    assert isolated("process") == settled
    assert isolated("hold", 520 << 20) == settled
    assert isolated("process") != settled


def test_a_child_that_ended_meanwhile_is_replaced() -> None:
    first = isolated("process")
    os.kill(first, signal.SIGKILL)
    while os.path.exists(f"/proc/{first}"):  # noqa: PTH110
        time.sleep(0.01)
    second = isolated("process_after", 0.0)
    assert second != first


def test_calls_of_several_threads_run_at_once() -> None:
    barrier = threading.Barrier(3)

    def run(number: int) -> tuple[int, int]:
        barrier.wait()
        child = isolated("process_after", 0.3)
        (back,) = isolated("same", np.full(LARGE, number))
        return child, int(back[-1])

    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(run, range(3)))
    assert len({child for child, _ in answers}) == 3
    assert [number for _, number in answers] == [0, 1, 2]


def test_children_start_anew_after_all_were_ended() -> None:
    first = isolated("process")
    close()
    assert not os.path.exists(f"/proc/{first}")  # noqa: PTH110
    assert isolated("process") != first


def test_children_have_no_contexts_and_ignore_interrupts() -> None:
    assert isolated("new_contexts") == 1
    assert isolated("new_contexts") == 1
    assert isolated("answer_to_interrupts")


def test_a_note_in_this_process_does_nothing() -> None:
    note("stablehlo.add")
