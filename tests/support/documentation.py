"""The examples in the documentation, found and run with sybil: README.md, CONTRIBUTING.md, docs/ and examples/.

Every fenced block is an example. Those of one page run in order, in a folder that holds a copy of ``examples/``:

- ``python`` runs in the namespace of the page;
- ``console`` has commands after ``$ ``, each followed by what it prints, in which ``...`` stands for anything. A
  command exits with 0 unless ``$ echo $?`` after it shows another code. Where no output is shown none is compared;
- ``sh`` has commands of ``vhlo`` alone;
- ``toml``, ``yaml`` and ``json`` are parsed, and ``toml`` is loaded as settings;
- a block that begins with a comment of nothing but the name of a file becomes that file, and no ``python`` of it runs.

A comment on the line above says if a block does not run, ``<!-- not run: REASON -->``, or runs only where a framework
is installed, ``<!-- run with: torch -->``.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from doctest import ELLIPSIS, Example, OutputChecker
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Final

from sybil import Document, Example as Block, Region
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

from support.corpus import EXAMPLES, ROOT
from support.forked_python import COMMAND
from support.vhlo_process import kept_workers, warm_python
from vhlo_tools.cli.main import main
from vhlo_tools.gate import load_settings

ALL_PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    EXAMPLES / "README.md",
    EXAMPLES / "specs" / "README.md",
)
#: The pages whose examples are run here. What one of them types changes the specification of the checkout:
#: tests/docs/test_adding_a_version.py types it in a copy.
PAGES: Final = tuple(page for page in ALL_PAGES if page.name != "adding-a-version.md")
FRAMEWORKS: Final = ("iree", "jax", "keras", "tensorflow", "torch")

#: The pages whose commands start processes for their work, as they do for a user; on others they find some started.
_STARTING: Final = (ROOT / "docs" / "migration.md",)

_MARKER: Final = re.compile(
    r"^<!-- (?:not run: (?P<reason>.+)|run with: (?P<framework>\w+)) -->\n(?=```)", re.MULTILINE
)
_FILE: Final = re.compile(r"(?:#|//) (\S+\.[a-z_]+)\n")
_EXIT_CODE: Final = "echo $?"
#: What is said of progress in a log, if the machine is slow.
_PROGRESS: Final = re.compile(r"^vhlo: \d+ (?:of \d+ )?files\b.*\n", re.MULTILINE)
#: Commands that need a process of their own, which is forked, or more than one program.
_OF_A_SHELL: Final = re.compile(r"vhlo (?:opt|translate|shims) |(?!vhlo )|.*[|<>;&*`]")


@dataclass(frozen=True, slots=True)
class Marker:
    """What the comment above a block says."""

    framework: str | None  # the framework that the block needs; ``None`` if it never runs
    reason: str | None  # why it never runs, if so


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def markers_of(page: Path) -> list[Marker]:
    return list(_markers_in(page, page.stat().st_mtime_ns))


@cache
def _markers_in(page: Path, changed: int) -> tuple[Marker, ...]:
    return tuple(marker for _, marker in _blocks(page) if marker is not None)


def pages_with(framework: str) -> list[Path]:
    return [page for page in PAGES if any(marker.framework == framework for marker in markers_of(page))]


def run_page(page: Path, folder: Path, frameworks: Collection[str]) -> None:
    """Run the examples of a page.

    Args:
        page: The page.
        folder: An empty folder, in which they run.
        frameworks: The frameworks that are installed.

    Raises:
        AssertionError: If a command prints or exits with something else than the page shows.
        Exception: Whatever an example raises.
    """
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    with chdir(folder), _own_modules(folder), nullcontext() if page in _STARTING else kept_workers():
        for block, marker in _blocks(page):
            if marker is None or marker.framework in frameworks:
                block.evaluate()


@cache
def folder_of_programs() -> Path:
    """Return a folder with a program `vhlo` for shells, which runs a command in a fork of a warm Python."""
    python = warm_python()
    python.write_program(python.folder / "vhlo", COMMAND)
    return python.folder


@contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Let what runs import modules from a folder, which are forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def _blocks(page: Path) -> Iterator[tuple[Block, Marker | None]]:
    """Yield the blocks of a page, each with what the comment above it says."""
    document = Document.parse(str(page), _markers, *(CodeBlockParser(name, run) for name, run in LANGUAGES.items()))
    document.namespace["__name__"] = page.stem
    marker = None
    for block in document:
        if isinstance(block.parsed, Marker):
            marker = block.parsed
        else:
            yield block, marker
            marker = None


def _markers(document: Document) -> Iterator[Region]:
    for found in _MARKER.finditer(document.text):
        yield Region(*found.span(), Marker(found["framework"], found["reason"]))


def _file_of(block: Block) -> Path | None:
    """Write a block to the file that its first line names, and return that; ``None`` if it names none."""
    named = _FILE.match(block.parsed)
    if named is None:
        return None
    path = Path(named[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.parsed, encoding="utf-8")
    return path


def _run_python(block: Block) -> None:
    if _file_of(block) is None:
        PythonEvaluator()(block)


def _run_console(block: Block) -> None:
    commands = re.split(r"^\$ ", block.parsed.replace("\\\n", ""), flags=re.MULTILINE)
    assert commands.pop(0) == "", f"{block.path}:{block.line}: expected a command after `$ ` first"
    for text, following in zip_longest(commands, commands[1:], fillvalue=""):
        command, _, shown = text.partition("\n")
        if command != _EXIT_CODE:
            expected = int(following.split()[-1]) if following.startswith(_EXIT_CODE) else 0
            _compare(block, command, shown, _run(block, command, expected))


def _run_lines(block: Block) -> None:
    for line in block.parsed.replace("\\\n", "").splitlines():
        command = line.removeprefix("./scripts/")
        # A package that an example installs would be installed here.
        assert command.startswith("vhlo "), f"{block.path}:{block.line}: say above why `{line}` does not run"
        _run(block, command, 0)


def _run(block: Block, command: str, expected: int) -> str:
    """Run a command, here if it is no other than ours, and return what it printed."""
    if _OF_A_SHELL.match(command):
        path = os.pathsep.join([str(folder_of_programs()), str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = ["bash", "-o", "pipefail", "-c", f"exec 2>&1; {command}"]
        done = subprocess.run(
            shell,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        code, out = done.returncode, done.stdout
    else:
        with io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) as printed:
            with redirect_stdout(printed), redirect_stderr(printed):
                code = main(shlex.split(command, comments=True)[1:])
            printed.seek(0)
            out = printed.read()
    assert code == expected, f"{block.path}:{block.line}: `{command}` exited with {code}, expected {expected}:\n{out}"
    return out


def _compare(block: Block, command: str, shown: str, out: str) -> None:
    want, got = (
        "\n".join(map(str.rstrip, text.splitlines())).rstrip() + "\n" for text in (shown, _PROGRESS.sub("", out))
    )
    checker = OutputChecker()
    # A line `...` stands for any number of lines, also none.
    if (
        want.strip()
        and not checker.check_output(want, got, ELLIPSIS)
        and not (want.startswith("...\n") and checker.check_output(want.removeprefix("...\n"), got, ELLIPSIS))
    ):
        difference = checker.output_difference(Example("", want), got, ELLIPSIS)
        raise AssertionError(f"{block.path}:{block.line}: $ {command}\n{difference}")


def _load_toml(block: Block) -> None:
    path = _file_of(block)
    assert path is not None, f"{block.path}:{block.line}: name the file in the first line, as a comment"
    load_settings(config=path)


def _parse_yaml(block: Block) -> None:
    import yaml  # which the environments of frameworks lack

    assert yaml.safe_load(block.parsed), f"{block.path}:{block.line}: there is nothing in it"
    _file_of(block)


def _parse_json(block: Block) -> None:
    json.loads(block.parsed)


def _write_mlir(block: Block) -> None:
    assert _file_of(block) is not None, f"{block.path}:{block.line}: name the file in the first line, as a comment"


#: What is done with blocks, by language.
LANGUAGES: Final[Mapping[str, Callable[[Block], None]]] = {
    # A drawing, or output without a command.
    "text": lambda block: None,
    "python": _run_python,
    "console": _run_console,
    "sh": _run_lines,
    "toml": _load_toml,
    "yaml": _parse_yaml,
    "json": _parse_json,
    "mlir": _write_mlir,
}
