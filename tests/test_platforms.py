"""What works on other systems: commands, in a Python from which was taken what macOS or Windows lack.

``tests/platforms/sitecustomize.py`` takes it away. Neither system was at hand: ``docs/platforms.md`` says so.
"""

from __future__ import annotations

import ast
import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.corpus import EXAMPLES
from support.forked_python import COMMAND, IMPORTS, ForkedPython

import vhlo_tools
import vhlo_tools as vt
from vhlo_tools import system
from vhlo_tools.errors import ReleaseEnvironmentError

pytestmark = pytest.mark.every_python

ROOT = Path(vhlo_tools.__file__).resolve().parents[1]
SAXPY = str(EXAMPLES / "saxpy.mlir")
INPUTS = ("-i", "2.0", "-i", "[1, 1, 1, 1]", "-i", "[3, 3, 3, 3]")
SYSTEMS = ("macos", "windows")


#: What an environment would download, uv would ask of the network, and of every Python of this machine.
OFFLINE = "from vhlo_tools.releases import downloads; downloads._resolved = lambda release: ([{}], (3, 11))\n"


def variables(on: str) -> dict[str, str]:
    """Return the environment of a Python as if on another system."""
    paths = os.pathsep.join([str(ROOT / "tests" / "platforms"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "VHLO_TOOLS_TEST_SYSTEM": on, "COLUMNS": "200"}


def python(on: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start Python as if on another system."""
    command, environment = [sys.executable, *arguments], {**variables(on), "VHLO_TOOLS_CACHE": str(folder / "cache")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@cache
def server(on: str) -> ForkedPython:
    made = ForkedPython(f"{IMPORTS}import jaxlib.mlir.ir", environment=variables(on))
    atexit.register(made.close)
    return made


def vhlo(on: str, folder: Path, *arguments: str, code: int = 0, before: str = "") -> str:
    """Run a command, after some code, in a Python that has been started as if on another system."""
    cache = {"VHLO_TOOLS_CACHE": str(folder / "cache")}
    done = server(on).run(before + COMMAND, *arguments, folder=folder, variables=cache)
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode == code, said
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vt.serialize(SAXPY, "1.9.0").save(tmp_path / "saxpy.mlirbc")
    return tmp_path


@pytest.mark.parametrize(
    ("on", "gone"),
    [
        ("macos", "os.memfd_create, os.O_TMPFILE, os.sched_getaffinity"),
        ("windows", "os.fork, os.pread, signal.pthread_sigmask, select.poll"),
    ],
)
def test_it_is_taken_away(on: str, gone: str, tmp_path: Path) -> None:
    """Also in what has been started once, and forks."""
    asked = [*gone.split(", "), "open('/proc/self/stat')", "import fcntl"]
    code = """
import os, select, signal, sys
for each in sys.argv[1:]:
    try:
        exec(each)
        print("nothing")
    except Exception as error:
        print(type(error).__name__)
"""
    wanted = ["AttributeError"] * (len(asked) - 2)
    wanted += ["FileNotFoundError", "ModuleNotFoundError" if on == "windows" else "nothing"]
    assert python(on, tmp_path, "-c", code, *asked).stdout.split() == wanted
    assert server(on).run(code, *asked).stdout.split() == wanted
    both = ["os.memfd_create, os.fork, open('/proc/self/stat')", "import fcntl"]
    assert python("linux", tmp_path, "-c", code, *both).stdout.split() == ["nothing", "nothing"]


@pytest.mark.parametrize("on", SYSTEMS)
def test_artifacts_are_read_and_moved(on: str, folder: Path) -> None:
    # As a user starts a command; the others are forked.
    shown = python(on, folder, "-c", COMMAND, "inspect", "saxpy.mlirbc")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "1.9.0" in shown.stdout
    assert shown.stdout == vhlo(on, folder, "inspect", "saxpy.mlirbc")
    vhlo(on, folder, "retarget", "saxpy.mlirbc", "--target", "0.14.0", "-o", "older.mlirbc")
    # The same bytes as on this system, which a translation of ends of lines would change.
    assert (folder / "older.mlirbc").read_bytes() == bytes(vt.retarget(folder / "saxpy.mlirbc", "0.14.0"))
    assert "exists" in vhlo(on, folder, "retarget", "saxpy.mlirbc", "--target", "1.0.0", "-o", "older.mlirbc", code=2)
    vhlo(on, folder, "retarget", "saxpy.mlirbc", "--target", "1.0.0", "-o", "older.mlirbc", "--force")
    assert vt.open_artifact(folder / "older.mlirbc").version == vt.Version("1.0.0")
    assert not list(folder.glob(".*.part"))
    vhlo(on, folder, "retarget", "--strip-debug-info", "saxpy.mlirbc", "-o", "small.mlirbc")
    vhlo(on, folder, "diff", "saxpy.mlirbc", "small.mlirbc")
    vhlo(on, folder, "manifest", "write", "saxpy.mlirbc")
    vhlo(on, folder, "manifest", "check", "saxpy.mlirbc")


@pytest.mark.parametrize("on", SYSTEMS)
def test_large_files_are_read_on_access(on: str, folder: Path) -> None:
    # What a file has beyond 64 KiB is read at its place, or copied in the kernel.
    values = np.arange(20_000, dtype=np.float32)
    text = f"""func.func @main() -> tensor<{values.size}xf32> {{
      %0 = stablehlo.constant dense<"0x{values.tobytes().hex()}"> : tensor<{values.size}xf32>
      return %0 : tensor<{values.size}xf32>
    }}"""
    vt.serialize(text, "1.9.0").save(folder / "large.mlirbc")
    vhlo(on, folder, "retarget", "large.mlirbc", "--target", "1.0.0", "-o", "older.mlirbc")
    assert (folder / "older.mlirbc").read_bytes() == bytes(vt.retarget(folder / "large.mlirbc", "1.0.0"))


@pytest.mark.parametrize("on", SYSTEMS)
def test_programs_are_written_and_checked(on: str, folder: Path) -> None:
    vhlo(on, folder, "serialize", SAXPY, "--target", "1.9.0", "-o", "written.mlirbc")
    assert (folder / "written.mlirbc").read_bytes() == (folder / "saxpy.mlirbc").read_bytes()
    assert "stablehlo.multiply" in vhlo(on, folder, "deserialize", "written.mlirbc")
    assert "no errors" in vhlo(on, folder, "check", SAXPY, "saxpy.mlirbc", "--target", "1.0.0")
    blocked = str(ROOT / "tests" / "programs" / "features" / "tan.mlir")
    assert "tan, since 1.4.0" in vhlo(on, folder, "check", blocked, "--target", "1.0.0", code=1)
    assert "stablehlo.multiply" in vhlo(on, folder, "opt", SAXPY)


@pytest.mark.parametrize("on", SYSTEMS)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_stores_are_migrated(on: str, jobs: str, folder: Path) -> None:
    store = folder / "store"
    store.mkdir()
    for number in range(3):
        (store / f"{number}.mlirbc").write_bytes((folder / "saxpy.mlirbc").read_bytes())
    vhlo(on, folder, "migrate", "store", "--target", "1.0.0", "--jobs", jobs)
    moved = bytes(vt.retarget(folder / "saxpy.mlirbc", "1.0.0"))
    assert {path.read_bytes() for path in store.glob("*.mlirbc")} == {moved}
    assert "no errors" in vhlo(on, folder, "check", "store", "--target", "1.0.0", "--jobs", jobs)


def test_programs_run_without_what_only_linux_has(folder: Path) -> None:
    for engine in ("reference", "xla"):
        assert "[5. 5. 5. 5.]" in vhlo("macos", folder, "run", "saxpy.mlirbc", "--engine", engine, *INPUTS)
    vhlo("macos", folder, "retarget", "saxpy.mlirbc", "--target", "1.0.0", "-o", "older.mlirbc")
    vhlo("macos", folder, "verify", "saxpy.mlirbc", "older.mlirbc")


def test_what_dies_without_what_only_linux_has_is_an_error(folder: Path) -> None:
    asked = """
from support.isolated_functions import *
from vhlo_tools.bindings import isolation
import vhlo_tools as vt
for name, limits in (("abort", None), ("hang", isolation.Limits(seconds=1))):
    try:
        isolation.call(f"support.isolated_functions:{name}", limits=limits)
    except vt.EngineError as error:
        print(type(error).__name__, error.op)
"""
    (folder / "asked.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n{asked}")
    done = python("macos", folder, "asked.py")
    assert done.stdout.splitlines() == [
        "EngineCrashError stablehlo.divide at model.py:3:4",
        "EngineTimeoutError stablehlo.while",
    ], done.stderr


def test_without_fork_a_sentence_says_what_runs_programs(folder: Path) -> None:
    for command in (["run", "saxpy.mlirbc", *INPUTS], ["verify", "saxpy.mlirbc", "saxpy.mlirbc"]):
        said = vhlo("windows", folder, *command, code=1)
        assert "it has no fork: use Linux, macOS or the Windows Subsystem for Linux" in said
    confirm = ["check", "saxpy.mlirbc", "--confirm-with", "jaxlib==0.8.3"]
    said = vhlo("windows", folder, *confirm, code=2, before=OFFLINE)
    assert "environments of real releases are made on Linux and macOS" in said


def test_without_fork_trusted_programs_run_in_the_calling_process(folder: Path) -> None:
    (folder / "run.py").write_text(
        "import numpy as np, vhlo_tools as vt\n"
        "x = np.ones(4, np.float32)\n"
        "print(*vt.run('saxpy.mlirbc', [2.0, x, x], engine='xla', in_process=True))\n"
    )
    assert python("windows", folder, "run.py").stdout == "[3. 3. 3. 3.]\n"


@pytest.mark.parametrize("on", SYSTEMS)
def test_no_module_needs_more_to_be_imported(on: str, tmp_path: Path) -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / "vhlo_tools").rglob("*.py"))
        if not {"inside", "frontends"} & set(path.parts)
    ]
    # What serves in a child process is imported where there are such processes, and frameworks where they are.
    apart: tuple[str, ...] = ("vhlo_tools.integrations.", "vhlo_tools.spec.shipped")
    if on == "windows":
        apart += tuple(f"vhlo_tools.bindings.isolation.{name}" for name in ("process", "server", "sandbox"))
    wanted = [name for name in names if not name.startswith(apart)]
    asked = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        importlib.import_module(name)\n"
        "    except (AttributeError, ImportError) as error:\n        print(name, type(error).__name__, error)\n"
    )
    lacking = python(on, tmp_path, "-c", asked, *wanted).stdout.splitlines()
    optional: tuple[str, ...] = (
        "iree",
        "torch",
        "jax",
        "tensorflow",
        "keras",
        "dask",
        "distributed",
        "pyarrow",
        "fsspec",
        "s3fs",
        "gcsfs",
    )
    optional += ("adlfs", "aiohttp", "matplotlib")
    assert not [line for line in lacking if not line.rpartition("named ")[2].strip("'").startswith(optional)]


def test_reads_at_places_without_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        assert system.read_at(file.fileno(), 3, 5) == b"567"
        assert system.read_at(file.fileno(), 3, 1) == b"123"
        assert system.read_at(file.fileno(), 3, 9) == b"9"


def test_releases_need_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from vhlo_tools.releases import environments as making

    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(ReleaseEnvironmentError, match="Linux and macOS"), making._locked(tmp_path / "lock"):
        pass


def test_signals_are_those_that_there_are() -> None:
    assert {each.name for each in system.signals("SIGINT", "SIGNOTHING")} == {"SIGINT"}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Ctrl-C cannot be held back")
def test_an_interrupt_is_held_back_whichever_thread_takes_it() -> None:
    passed = False
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with system.interrupts_held():
            other = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
            other.start()
            other.join()
            time.sleep(0.1)
            passed = True
        pytest.fail("the interrupt was lost")
    except KeyboardInterrupt:
        assert passed
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_files_are_opened_by_bytes() -> None:
    """Every ``os.open`` says that the file is no text, or opens a folder, which Windows refuses."""
    bare = []
    for path in sorted((ROOT / "vhlo_tools").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # To parse all of them takes seconds.
        tree = ast.parse(text if "os.open" in text else "")
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call) and len(each.args) > 1):
            if ast.unparse(call.func) == "os.open":
                flags = ast.unparse(call.args[1])
                if not any(word in flags for word in ("BINARY", "_SAFELY", "safe", "O_PATH", "FOLDER")):
                    bare.append(f"{path.relative_to(ROOT)}:{call.lineno}: {flags}")
    # Of folders, and of devices.
    assert [each.rpartition(": ")[0].rpartition(":")[0] for each in bare] == [
        "vhlo_tools/cli/main.py",
        "vhlo_tools/cli/upstream.py",
        "vhlo_tools/stores/migration.py",
    ], bare
