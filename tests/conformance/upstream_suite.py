"""Run the tests of openxla/stablehlo, unchanged, through `vhlo opt` and `vhlo translate`: `upstream_suite PATH`.

PATH is a checkout, best one of the version that is installed. Needed are `lit` from PyPI, and `FileCheck` and `not`,
which Debian has in llvm-N-tools. What is expected not to pass stands, with the reason, in upstream_suite.toml; the exit
code is 1 if anything else does not pass, or if what stands there does.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upstream_server import SOCKET, serve, write_clients

from vhlo_tools.bindings import get_provider

SUITES: Final = ("stablehlo/tests", "stablehlo/testdata")
EXPECTED: Final = Path(__file__).with_suffix(".toml")
#: How a test of lit ended, in our words.
PASSED: Final = frozenset({"PASS", "XFAIL", "FLAKYPASS"})
UNSUPPORTED: Final = frozenset({"UNSUPPORTED", "EXCLUDED", "SKIPPED"})
_CONFIG: Final = """
import lit.formats
config.name = {name!r}
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = {source!r}
config.test_exec_root = {work!r}
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
config.environment["{variable}"] = {socket!r}
config.environment["PATH"] = {path!r}
"""
_HINT: Final = "lit is on PyPI, and the dependency group `upstream` brings it; --lit says how to run it."
_LONGEST: Final = 300
_FAULT: Final = re.compile(r"error|Unknown|died|assert|terminate called|check fail", re.IGNORECASE)
#: As its package has no entry point but its program, which may be in another place than the path.
_LIT: Final = (sys.executable, "-c", "from lit.main import main; main()")


class LitError(Exception):
    """lit did not run the tests; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """What came of a test."""

    name: str  # the test, by its path in the checkout
    code: str  # how it ended, in lit's words
    reason: str  # why it did not pass


def find_tool(name: str) -> str | None:
    """Return the path of a program of LLVM, in the path or of the newest version where Debian puts it."""
    found = shutil.which(name)
    if found:
        return found
    installed = Path("/usr/lib").glob(f"llvm-*/bin/{name}")
    newest = sorted(installed, key=lambda path: int(path.parts[3].removeprefix("llvm-")))
    return str(newest[-1]) if newest else None


@contextmanager
def warm_server(path: Path) -> Iterator[None]:
    """Run the server that does the work, at the socket ``path``; nothing that it began is left running."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            serve(listener)
        finally:
            os._exit(1)
    listener.close()
    try:
        yield
    finally:
        _end_group(pid)
        os.waitpid(pid, 0)


def _end_group(pid: int) -> None:
    """End a process that leads a session, and all in it."""
    for group in (os.killpg, os.kill):
        # Only just begun, it may lead none yet.
        with suppress(ProcessLookupError):
            group(pid, signal.SIGKILL)


def names_of(checkout: Path, suite: str, only: str) -> list[str]:
    """Return the tests of a folder of the checkout whose names match a regular expression, by their paths in it."""
    source = checkout / suite
    paths = (path.relative_to(source).as_posix() for path in source.rglob("*.mlir"))
    return sorted(path for path in paths if re.search(only, f"{suite}/{path}"))


def run_suite(checkout: Path, suite: str, work: Path, search: str, arguments: argparse.Namespace) -> list[Outcome]:
    """Run the tests of a folder of the checkout with lit.

    Raises:
        LitError: If lit does not do so.
    """
    folder = work / suite.replace("/", "_")
    folder.mkdir()
    source = str((checkout / suite).resolve())
    config = {"name": suite, "source": source, "work": str(folder), "path": search, "variable": SOCKET}
    (folder / "lit.site.cfg.py").write_text(_CONFIG.format(**config, socket=str(work / "socket")))
    results, paths = work / f"{folder.name}.json", work / f"{folder.name}.txt"
    names = names_of(checkout, suite, arguments.only) if arguments.only else [""]
    if not names:
        return []
    paths.write_text("".join(f"{folder / name}\n" for name in names))
    command = [
        *arguments.lit, "-q", "--ignore-fail", f"-j{arguments.processes}",
        f"--timeout={arguments.timeout}", "--output", str(results), f"@{paths}",
    ]  # fmt: skip
    code, said = _run(command)
    if code or not results.exists():
        raise LitError(f"{shlex.join(command)} ended with exit code {code}:\n{said.strip()}\n{_HINT}")
    tests = json.loads(results.read_text())["tests"]
    return [
        Outcome(
            f"{suite}/{each['name'].partition(' :: ')[2]}",
            each["code"],
            "" if each["code"] in PASSED else reason_of(each.get("output", "")),
        )
        for each in tests
    ]


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Run a command to its end, and return its exit code and what it said; if we are interrupted, end it and its own.

    Raises:
        LitError: If there is none such.
    """
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise LitError(f"{command[0]} cannot be run: {error.strerror}. {_HINT}") from error
    try:
        said, _ = process.communicate()
    except BaseException:
        _end_group(process.pid)
        process.wait()
        raise
    return process.returncode, said


def reason_of(output: str) -> str:
    """Return why a test did not pass, of what lit wrote about it: of the first command that failed, shortened."""
    # It stops after the line of commands that failed, of which an earlier one in the line is the cause.
    *_, line = output.split("# RUN: at line ")
    commands = line.split("# executed command: ")[1:]
    failed = next((each for each in commands if "\n# error: " in each), None)
    if failed is None:
        return output.strip().rpartition("\n")[2][:_LONGEST]
    command, _, rest = failed.partition("\n")
    if command.startswith("diff "):
        return f"{command}: they differ"
    said = re.findall(r"^# \| (.*\S.*)$", rest, re.MULTILINE)
    faults = [line for line in said if _FAULT.search(line)] or said
    if not faults:
        return f"{command}: {'; '.join(re.findall(r'^# error: (.*)$', rest, re.MULTILINE))}"[:_LONGEST]
    # What the library said before it died is the cause of that.
    died = [line for line in faults[1:] if "the library crashed with" in line]
    return "; ".join(each[:_LONGEST] for each in (faults[0], *died[:1]))


def expected_shortfalls(library: str) -> dict[str, str]:
    """Return the tests that are known not to pass, by patterns of their paths, each with the reason.

    Args:
        library: The version of StableHLO within the library, as in ``1.17.0``.
    """
    shortfalls: dict[str, str] = {}
    for entry in tomllib.loads(EXPECTED.read_text())["shortfall"]:
        if library in entry.get("libraries", [library]):
            shortfalls.update(dict.fromkeys(entry["tests"], entry["reason"]))
    return shortfalls


def report(outcomes: Iterable[Outcome], shortfalls: Mapping[str, str]) -> bool:
    """Print counts, and each test that did not pass with its reason; return whether all is as expected."""
    outcomes = list(outcomes)
    unexpected = []
    met: set[str] = set()
    for each in sorted(outcomes, key=lambda each: each.name):
        pattern = next((pattern for pattern in shortfalls if fnmatch.fnmatch(each.name, pattern)), None)
        if pattern and each.code not in PASSED:
            met.add(pattern)
            print(f"{each.name}: as expected: {shortfalls[pattern]}")
        elif each.code in UNSUPPORTED:
            print(f"{each.name}: {each.code.lower()}: {each.reason}")
        elif each.code not in PASSED:
            unexpected.append(each)
    for each in unexpected:
        print(f"{each.name}: {each.code}: {each.reason}")
    ran = {each.name for each in outcomes}
    idle = [
        pattern for pattern in shortfalls if pattern not in met and any(fnmatch.fnmatch(name, pattern) for name in ran)
    ]
    for pattern in idle:
        print(f"{pattern}: passes, but is expected not to: {shortfalls[pattern]}")
    for suite in SUITES:
        counts = Counter(
            "passed" if each.code in PASSED else "unsupported" if each.code in UNSUPPORTED else "failed"
            for each in outcomes
            if each.name.startswith(suite + "/")
        )
        if counts:
            listed = ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "unsupported"))
            print(f"{suite}: {counts.total()} tests: {listed}")
    print(f"not as expected: {len(unexpected) + len(idle)}")
    return not unexpected and not idle


def main() -> int:
    """Run the tests of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="a checkout of openxla/stablehlo")
    parser.add_argument("--only", metavar="REGEX", help="run only tests with a match in their path")
    parser.add_argument("--suite", action="append", choices=SUITES, help="run only this; may be given again")
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each test (default 300)")
    parser.add_argument(
        "--lit", type=shlex.split, default=_LIT, help="how to run lit (default: as a module of this Python)"
    )
    parser.add_argument("--output", type=Path, help="where to write all outcomes as JSON")
    arguments = parser.parse_args()
    try:
        re.compile(arguments.only or "")
    except re.error as error:
        parser.error(f"--only: {arguments.only!r} is no regular expression: {error}")
    if arguments.output and not arguments.output.parent.is_dir():
        parser.error(f"--output: there is no folder {arguments.output.parent}")
    tools = {name: find_tool(name) for name in ("FileCheck", "not")}
    if missing := [name for name, path in tools.items() if path is None]:
        parser.error(f"there is no {' and no '.join(missing)}: Debian has them in llvm-19-tools")
    wanted = arguments.suite or SUITES
    suites = [suite for suite in wanted if (arguments.path / suite).is_dir()]
    lacking = [suite for suite in wanted if suite not in suites]
    if lacking and (arguments.suite or not suites):
        parser.error(f"there is no {' and no '.join(lacking)} in {arguments.path}, which is to be a checkout")
    for suite in lacking:
        print(f"upstream_suite: there is no {suite} in {arguments.path}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        programs = work / "bin"
        programs.mkdir()
        write_clients(programs, sys.executable)
        for name, path in tools.items():
            (programs / name).symlink_to(str(path))
        search = f"{programs}:{os.environ.get('PATH', os.defpath)}"
        try:
            with warm_server(work / "socket"):
                outcomes = [
                    each for suite in suites for each in run_suite(arguments.path, suite, work, search, arguments)
                ]
        except LitError as error:
            parser.error(str(error))
        except KeyboardInterrupt:
            print("upstream_suite: interrupted", file=sys.stderr)
            return 130
    if arguments.output:
        arguments.output.write_text(json.dumps([vars(each) for each in outcomes], indent=1))
    if not outcomes:
        parser.error(f"no test in {' or '.join(suites)} has a name that matches {arguments.only!r}")
    library = str(get_provider().library.current)
    print(f"{get_provider().library.name}, StableHLO {library}")
    return 0 if report(outcomes, expected_shortfalls(library)) else 1


if __name__ == "__main__":
    sys.exit(main())
