"""Programs that make calls in child processes, and what is left of those when they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.isolation import Limits

pytestmark = pytest.mark.every_python

TESTS = Path(__file__).parents[1]
IMPORTS = "from vhlo_tools.bindings.isolation import call\nimport os, sys\nfrom pathlib import Path\n"


def run(code: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python, which must say nothing but what is printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", *(arguments or ("-c", code))],
        input=stdin,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}


def alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def assert_busy(process: int) -> None:
    """Wait until a process computes, as one does in a call that never ends."""

    def ticks() -> int:
        used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used))

    before = ticks()
    for _ in range(3000):
        if ticks() > before + os.sysconf("SC_CLK_TCK") // 10:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} does nothing")


def assert_ends(process: int) -> None:
    for _ in range(500):
        if not alive(process):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")


def shared_memory() -> set[str]:
    # Locks of multiprocessing, which other tests use, have a name for a moment.
    return {path.name for path in Path("/dev/shm").iterdir() if not path.name.startswith("sem.mp-")}


def without_owner(names: set[str]) -> set[str]:
    """Return the files in shared memory that no living process has mapped: others make such files too, and use them."""
    mapped = set[str]()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            mapped.update(re.findall(r"/dev/shm/(\S+)", maps.read_text()))
    return names - mapped


def test_a_program_without_a_guard_runs_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = IMPORTS + "print('started')\nprint(call('support.isolated_functions:process'))\n"
    script = tmp_path / "script.py"
    script.write_text(code)
    before = shared_memory()
    for result in (run(code), run(code, str(script)), run(code, "-", stdin=code)):
        first, child = result.stdout.split()
        assert first == "started"
        assert not alive(int(child))
    assert not without_owner(shared_memory() - before)


def test_memory_that_cannot_be_shared_is_an_error() -> None:
    code = """
import resource
from vhlo_tools.errors import EngineError
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    call("support.isolated_functions:process", memoryview(bytes(2 << 20)))
except EngineError as error:
    print(error)
"""
    assert run(IMPORTS + code).stdout == (
        "the memory that is shared with a child process cannot be written: File too large\n"
    )


def test_nothing_starts_before_the_first_call() -> None:
    code = """
import os
import vhlo_tools.bindings.isolation
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no children")
"""
    assert run(code).stdout == "no children\n"


def test_a_fork_of_the_caller_has_children_of_its_own() -> None:
    code = (
        IMPORTS
        + """
mine = call("support.isolated_functions:process")
sys.stdout.flush()
if not (child := os.fork()):
    other = call("support.isolated_functions:process")
    assert other != mine
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert call("support.isolated_functions:process") == mine
"""
    )
    run(code)


@pytest.mark.parametrize("victim", ["caller", "server"])
def test_children_in_a_call_that_never_ends_die_with_their_caller_and_with_the_server(victim: str) -> None:
    code = (
        IMPORTS
        + """
import threading
child = call("support.isolated_functions:process")
server = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
print(child, server, flush=True)
call("support.isolated_functions:hang")
"""
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as caller:
        assert caller.stdout is not None
        assert caller.stderr is not None
        child, server = (int(each) for each in caller.stdout.readline().split())
        assert_busy(child)
        os.kill(caller.pid if victim == "caller" else server, signal.SIGKILL)
        assert_ends(child)
        assert_ends(server)
        said = caller.stderr.read()
    assert ("EngineCrashError: the child process has disappeared" in said) == (victim == "server")


def test_after_the_server_was_killed_the_next_call_starts_another() -> None:
    code = (
        IMPORTS
        + """
import signal
child = call("support.isolated_functions:process")
server = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])
os.kill(server, signal.SIGKILL)
while os.path.exists(f"/proc/{child}"):
    pass
assert call("support.isolated_functions:process") != child
"""
    )
    run(code)


def test_an_interrupt_ends_the_child_and_not_what_comes_next() -> None:
    code = (
        IMPORTS
        + """
import signal, threading
from bindings.test_isolation_processes import assert_busy
child = call("support.isolated_functions:process")
def interrupt():
    assert_busy(child)
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=interrupt).start()
    call("support.isolated_functions:hang")
except KeyboardInterrupt:
    print("interrupted")
assert not os.path.exists(f"/proc/{child}")
assert call("support.isolated_functions:process") != child
"""
    )
    assert run(code).stdout == "interrupted\n"


def test_an_interpreter_that_cannot_be_started_is_named() -> None:
    code = (
        IMPORTS
        + """
import vhlo_tools as vt
sys.executable = "/no/such/python"
try:
    call("support.isolated_functions:process")
except vt.EngineStartError as error:
    print(error)
sys.executable = "/bin/false"
try:
    call("support.isolated_functions:process")
except vt.EngineStartError as error:
    print(error)
"""
    )
    one, other = run(code).stdout.splitlines()
    assert one.startswith("no child process can be started with '/no/such/python': ")
    assert other.startswith("no child process can be started with '/bin/false': ")


def test_any_thread_may_ask_whether_a_child_is_alive() -> None:
    """Also during a call: what can be read then is the call's, and is no sign of an end."""
    worker = isolation.start()
    rounds = 300

    def ask() -> bool:
        return all(worker.alive for _ in range(rounds))

    try:
        assert worker.call("support.isolated_functions:same", (3,), Limits(60)) == (3,)
        with ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(ask) for _ in range(4)]
            for number in range(30):
                assert worker.call("support.isolated_functions:same", (number,), Limits(60)) == (number,)
            assert all(each.result(30) for each in asked)
    finally:
        worker.end()
    assert not worker.alive
