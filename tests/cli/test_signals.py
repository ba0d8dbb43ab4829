"""Commands that are interrupted or killed: by Ctrl-C at any time, and by SIGKILL, which leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

#: What the console script contains.
SCRIPT = "import sys; from vhlo_tools.cli.entry import main; sys.exit(main())"
MARK = "VHLO_TOOLS_TEST_MARK"

LONG = """
func.func @main() -> tensor<i64> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %end = stablehlo.constant dense<9000000000000000000> : tensor<i64>
  %r = stablehlo.while(%i = %zero) : tensor<i64>
    cond {
      %c = stablehlo.compare LT, %i, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i64>
      stablehlo.return %n : tensor<i64>
    }
  return %r : tensor<i64>
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program that runs for ever, and a store of very many files."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "long.mlir").write_text(LONG)
    (folder / "other.mlir").write_text(LONG.replace("9000000000000000000", "8000000000000000000"))
    (folder / "texts").mkdir()
    for number in range(2000):
        # Equal programs would be checked once.
        (folder / f"texts/{number}.mlir").write_text(f"{LONG}// {number}\n")
    os.mkfifo(folder / "fifo")
    (folder / "store").mkdir()
    data = bytes(vt.serialize(LONG, "1.9.0"))
    for number in range(4000):
        (folder / f"store/{number}.mlirbc").write_bytes(data)
    return folder


COMMANDS = {
    "opt": "opt {folder}/fifo",
    "translate": "translate --interpret {folder}/long.mlir",
    "run": "run {folder}/long.mlir --engine reference",
    "verify": "verify {folder}/long.mlir {folder}/other.mlir --engine reference",
    "golden": "golden record {folder}/suite {folder}/long.mlir --engine reference",
    "check": "check --no-cache {folder}/texts --target 1.0.0",
    "migrate": "migrate -j 2 {folder}/store --target 1.0.0 --dry-run",
    "store": "store status -j 2 {folder}/store",
}


def started(command: str, mark: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, MARK: mark}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *command.split()],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def marked(mark: str) -> list[int]:
    """Return the living processes whose environment has the mark."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            if wanted in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_leaves_no_process_behind(name: str, folder: Path) -> None:
    mark = uuid.uuid4().hex
    process = started(COMMANDS[name].format(folder=folder), mark)
    assert process.stderr
    try:
        # Until it has the processes that it needs.
        limit = time.monotonic() + 120
        while len(marked(mark)) < 2 and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None, process.stderr.read().decode()
        assert len(marked(mark)) >= 2
        time.sleep(0.5)
        assert process.poll() is None, process.stderr.read().decode()
        process.kill()
        process.wait()
        limit = time.monotonic() + 60
        while (left := marked(mark)) and time.monotonic() < limit:
            time.sleep(0.05)
        assert not left
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        for each in marked(mark):
            os.kill(each, signal.SIGKILL)


# What Python does itself before it runs the script is not ours: it ends at once, with a traceback if it has begun to
# import. So the waits count from where the entry point has begun to handle Ctrl-C.
ANNOUNCED = """
import signal, sys
import vhlo_tools.cli.entry
# Whoever runs tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
install = signal.signal
def announcing(*given):
    signal.signal = install
    install(*given)
    sys.stderr.write("begun\\n"); sys.stderr.flush()
signal.signal = announcing
"""


#: The milliseconds until Ctrl-C.
WAITS = (0, 20, 50, 100, 200, 300, 600, 1500)


@pytest.mark.parametrize("name", ["run", "opt", "check"])
def test_ctrl_c_at_any_time(name: str, folder: Path) -> None:
    command = COMMANDS[name].format(folder=folder)
    with ThreadPoolExecutor(2) as threads:
        ends = list(threads.map(lambda milliseconds: interrupted(command, milliseconds), WAITS))
    for milliseconds, (code, said) in zip(WAITS, ends, strict=True):
        assert (code, b"Traceback" in said) == (130, False), (milliseconds, said)


LOST = """
import contextlib, signal, time
import vhlo_tools.cli.main
class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
class Described:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
def run():
    try:
        {way}
        time.sleep(60)
    finally:
        time.sleep(0.3)
        print("cleaned up")
signal.signal(signal.SIGINT, signal.default_int_handler)
vhlo_tools.cli.main.main = run
"""


@pytest.mark.parametrize(
    "way",
    [
        "Finalized()",
        "type('Class', (), {'name': Described()})",
        "with contextlib.suppress(KeyboardInterrupt): signal.raise_signal(signal.SIGINT)",
    ],
)
def test_ctrl_c_is_not_lost_where_what_it_raises_is(way: str) -> None:
    script = f"{LOST.replace('{way}', way)}\n{SCRIPT}"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=120)
    # What is cleaned up is not interrupted itself.
    assert (result.returncode, result.stdout, result.stderr) == (130, b"cleaned up\n", b"")


def interrupted(command: str, milliseconds: int) -> tuple[int, bytes]:
    """Return the exit code of a command that gets Ctrl-C after some time, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{ANNOUNCED}\n{SCRIPT}", *command.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr
    try:
        assert process.stderr.readline() == b"begun\n"
        time.sleep(milliseconds / 1000)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


def test_an_example_is_no_longer_interrupted_when_it_has_ended() -> None:
    command = [sys.executable, "-c", SCRIPT, "inspect", str(EXAMPLES / "saxpy.mlir")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
