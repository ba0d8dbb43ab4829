"""What is loaded when: the core without bindings, and nothing before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.forked_python import ForkedPython

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

_REPORT = "import sys, json; print(json.dumps(sorted(sys.modules)))"


@pytest.fixture(scope="module")
def python() -> Iterator[ForkedPython]:
    """A Python that has imported nothing: what is loaded in it is what code loads."""
    with ForkedPython() as server:
        yield server


def modules_after(python: ForkedPython, code: str) -> set[str]:
    result = python.run(f"{code}\n{_REPORT}")
    assert result.returncode == 0, (code, result.stderr)
    return set(json.loads(result.stdout.splitlines()[-1]))


def bindings_in(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] in ("jaxlib", "jax", "torch_mlir", "mlir")}


def test_a_fork_has_loaded_what_a_start_does(python: ForkedPython) -> None:
    code = f"import vhlo_tools\n{_REPORT}"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(started.stdout)) == modules_after(python, "import vhlo_tools")


def test_importing_the_package_loads_next_to_nothing(python: ForkedPython) -> None:
    loaded = modules_after(python, "import vhlo_tools")
    assert not bindings_in(loaded)
    assert "numpy" not in loaded
    assert {name for name in loaded if name.startswith("vhlo_tools")} == {
        "vhlo_tools",
        "vhlo_tools.exports",
        "vhlo_tools.lazy",
    }


def test_every_public_name_loads_no_bindings(python: ForkedPython) -> None:
    # What none of them loads after the others, none loads alone: only which it is would need a process for each.
    together = modules_after(python, "import vhlo_tools\nfor name in vhlo_tools.__all__: getattr(vhlo_tools, name)")
    assert {f"vhlo_tools.{room}" for room in ("api", "artifact", "execution", "verification")} <= together
    guilty = {}
    if bindings_in(together):
        guilty = {
            name: bindings_in(modules_after(python, f"import vhlo_tools; vhlo_tools.{name}")) for name in vt.__all__
        }
    assert bindings_in(together) == set(), {name: loaded for name, loaded in guilty.items() if loaded}


def test_public_names_are_listed_and_nothing_else_is_there() -> None:
    assert set(dir(vt)) == set(vt.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = getattr(vt, "nonsense")  # noqa: B009


@pytest.mark.parametrize(
    "code",
    [
        "from vhlo_tools.cli.main import main; main(['inspect', {artifact!r}])",
        "from vhlo_tools.cli.main import main; main(['inspect', {export!r}, '--output-format', 'json'])",
        "from vhlo_tools.cli.main import main; main(['targets'])",
        "from vhlo_tools.cli.main import main; main(['spec', 'show', 'all_reduce'])",
        "from vhlo_tools.cli.main import main; main(['spec', 'lint'])",
        "from vhlo_tools.cli.main import main; main(['check', {artifact!r}, '--target', '1.0.0', '--isolated'])",
        "from vhlo_tools.cli.main import main; main(['diff', {artifact!r}, {artifact!r}])",
        "from vhlo_tools.cli.main import main; main(['constants', 'list', {artifact!r}])",
        "from vhlo_tools.spec import downgrade, upgrade",
        "from vhlo_tools.cli.main import main; main(['targets', 'jaxlib==0.4.31', '4w'])",
        "import vhlo_tools as vt; vt.open_artifact({artifact!r}).dialects",
        "from vhlo_tools.integrations import jax; assert len(jax.retarget({export!r}, '1.16.0')) > 0",
    ],
)
def test_the_core_loads_no_bindings(code: str, artifact: str, python: ForkedPython) -> None:
    export = str(EXAMPLES / "symbolic_export.jax_export")
    loaded = modules_after(python, code.format(artifact=artifact, export=export))
    assert not bindings_in(loaded)
    assert "numpy" not in loaded


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("artifacts") / "saxpy.mlirbc"
    vt.serialize(EXAMPLES / "saxpy.mlir").save(path)
    return str(path)


#: The standard library that short commands may load beside what click loads; all of it together takes milliseconds.
_BESIDE_CLICK = frozenset(
    [
        "_bisect",
        "_heapq",
        "_locale",
        "_string",
        "_struct",
        "array",
        "bisect",
        "copy",
        "dataclasses",
        "difflib",
        "fnmatch",
        "gc",
        "glob",
        "grp",
        "heapq",
        "ipaddress",
        "locale",
        "math",
        "ntpath",
        "pathlib",
        "pwd",
        "signal",
        "string",
        "struct",
        "tomllib",
        "urllib",
    ]
)
#: The rooms that every one of them may load, and those of each.
_ROOMS = {"artifact", "bytecode", "cli", "compat", "spec", "files"}
_ROOMS_OF_CHECK = {"aliasing", "api", "gate", "stores"}


@pytest.mark.parametrize(
    ("command", "rooms", "most"),
    [
        (["inspect", "{artifact}"], {"aliasing"}, 90),
        (
            ["check", "{artifact}", "--target", "1.0.0", "--isolated"],
            {"aliasing", "api", "gate", "stores"},
            130,
        ),
        (["retarget", "{artifact}", "--target", "1.0.0", "-o", "{to}"], {"api"}, 90),
    ],
)
def test_short_commands_load_what_they_use(
    command: list[str], rooms: set[str], most: int, artifact: str, python: ForkedPython, tmp_path: Path
) -> None:
    arguments = [part.format(artifact=artifact, to=tmp_path / "out.mlirbc") for part in command]
    run = f"import sys; sys.argv = {['vhlo', *arguments]!r}; from vhlo_tools.cli.entry import main; main()"
    loaded = modules_after(python, run) - modules_after(python, "import click")
    beside = {name.partition(".")[0] for name in loaded} - {"importlib", "pathlib", "vhlo_tools"}
    assert beside <= _BESIDE_CLICK
    ours = {name for name in loaded if name.startswith("vhlo_tools.")}
    assert {name.split(".")[1] for name in ours if name.count(".") > 1} <= _ROOMS | rooms
    assert len(ours) <= most


def test_a_page_needs_nothing_that_a_browser_lacks(artifact: str, python: ForkedPython) -> None:
    loaded = modules_after(python, f"import vhlo_tools as vt; vt.report({artifact!r})")
    assert not {"sqlite3", "_multiprocessing", "fcntl", "ssl"} & (loaded - modules_after(python, "import click"))
