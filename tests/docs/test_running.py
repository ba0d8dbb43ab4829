"""The runner of examples finds what is wrong with a page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.corpus import EXAMPLES
from support.documentation import Marker, folder_of_programs, markers_of, run_page

Run = Callable[..., Path]


def block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Returns a page of blocks, after running it."""

    def run_blocks(*blocks: str, frameworks: tuple[str, ...] = ()) -> Path:
        number = len(list(tmp_path.iterdir()))
        page, folder = tmp_path / f"page{number}.md", tmp_path / f"empty{number}"
        page.write_text("\n".join(blocks))
        folder.mkdir()
        run_page(page, folder, frameworks)
        return page

    return run_blocks


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([block("python", "x = 1"), block("python", "y = x / 0")], "division by zero"),
        ([block("python", "# tool.py\nx = 1 / 0"), block("python", "import tool")], "division by zero"),
        ([block("console", "$ vhlo targets 1.x")], "`vhlo targets 1.x` exited with 2, expected 0"),
        ([block("console", "$ vhlo targets 1.x\n$ echo $?\n1")], "exited with 2, expected 1"),
        ([block("console", "$ vhlo targets 1.x\n$ vhlo targets 1.9.0\n$ echo $?\n0")], "exited with 2, expected 0"),
        ([block("console", "$ vhlo targets 1.9.0\ntarget ... nothing")], "Expected:\n    target ... nothing"),
        ([block("console", "vhlo targets 1.9.0")], "expected a command after `\\$ `"),
        ([block("console", "$ echo one | cat\ntwo")], "Got:\n    one"),
        ([block("console", "$ false | cat")], "exited with 1, expected 0"),
        ([block("sh", "vhlo targets 1.x")], "exited with 2, expected 0"),
        ([block("sh", "pip install nothing")], "say above why `pip install nothing` does not run"),
        ([block("toml", "# pyproject.toml\n[tool.vhlo-tools]\ntarge = []")], "did you mean target"),
        ([block("toml", "[tool.vhlo-tools]")], "name the file"),
        ([block("yaml", "a: [1")], "expected"),
        ([block("json", "{1}")], "property name"),
        ([block("mlir", "module {}")], "name the file"),
    ],
)
def test_what_is_wrong_is_found(blocks: list[str], message: str, run: Run) -> None:
    with pytest.raises(Exception, match=message):
        run(*blocks)


def test_what_is_right_passes(run: Run) -> None:
    run(
        block("mlir", "// a.mlir\nfunc.func @main() { return }"),
        block("python", "# tool.py\nx = 1"),
        block("python", "import tool\ny = tool.x"),
        block("python", "assert y == 1"),
        block("console", "$ vhlo targets 1.x\nvhlo: ...\n$ echo $?\n2\n$ vhlo targets 1.9.0\ntarget ...\n1.9.0 ..."),
        block("console", "$ vhlo serialize a.mlir --target 1.9.0 -o b.mlirbc\n$ ls | grep -vc __pycache__\n4"),
        block("sh", "./scripts/vhlo inspect \\\n  b.mlirbc"),
        block("toml", "# vhlo-tools.toml\ntarget = '1.9.0'"),
        block("yaml", "a: 1"),
        block("json", "[1]"),
    )


def test_what_is_marked_runs_where_it_can(run: Run) -> None:
    blocks = [
        f"<!-- not run: needs a network -->\n{block('sh', 'pip install nothing')}",
        f"<!-- run with: torch -->\n{block('python', '1 / 0')}",
    ]
    assert markers_of(run(*blocks)) == [Marker(None, "needs a network"), Marker("torch", None)]
    with pytest.raises(ZeroDivisionError):
        run(*blocks, frameworks=("torch",))


def test_a_page_leaves_no_modules_behind(run: Run) -> None:
    for number in range(2):
        run(block("python", f"# tool.py\nx = {number}"), block("python", f"import tool\nassert tool.x == {number}"))


def test_what_shells_run_is_what_a_user_sees() -> None:
    """A command is forked there, not started; a shell, and all that it starts, sees no difference."""
    commands = [
        "vhlo targets 1.x; echo $?",
        "vhlo targets 1.9.0 2>&1 | cat",
        f"vhlo opt - --canonicalize < {EXAMPLES / 'saxpy.mlir'} > out; cat out",
        "(cd / && vhlo inspect nothing); vhlo --nothing; vhlo --version >> out; cat out",
    ]
    script = "\n".join(commands)
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]

    def shown(paths: list[str]) -> list[object]:
        environment = {**os.environ, "PATH": os.pathsep.join(paths)}
        with TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-c", script], env=environment, cwd=folder, capture_output=True, check=False)
        return [done.returncode, done.stdout, done.stderr]

    forked = shown([str(folder_of_programs()), *paths])
    assert forked == shown(paths)
    assert forked[0] == 0
