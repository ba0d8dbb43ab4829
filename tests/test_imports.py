"""What is loaded when: the core without bindings, and nothing before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt

_REPORT = "import sys, json; print(json.dumps(sorted(sys.modules)))"


def modules_after(code: str) -> set[str]:
    result = subprocess.run([sys.executable, "-c", f"{code}\n{_REPORT}"], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def bindings_in(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] in ("jaxlib", "jax", "torch_mlir", "mlir")}


def test_importing_the_package_loads_next_to_nothing() -> None:
    loaded = modules_after("import vhlo_tools")
    assert not bindings_in(loaded)
    assert "numpy" not in loaded
    assert {name for name in loaded if name.startswith("vhlo_tools")} == {"vhlo_tools", "vhlo_tools.lazy"}


@pytest.mark.parametrize("name", vt.__all__)
def test_every_public_name_loads_no_bindings(name: str) -> None:
    assert not bindings_in(modules_after(f"import vhlo_tools; vhlo_tools.{name}"))


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
        "from vhlo_tools.dialect import downgrade, upgrade",
        "from vhlo_tools.cli.main import main; main(['targets', 'jaxlib==0.4.31', '4w'])",
        "import vhlo_tools as vt; vt.open_artifact({artifact!r}).dialects",
        "from vhlo_tools.integrations import jax; assert len(jax.retarget({export!r}, '1.16.0')) > 0",
    ],
)
def test_the_core_loads_no_bindings(code: str, artifact: str) -> None:
    export = str(EXAMPLES / "symbolic_export.jax_export")
    loaded = modules_after(code.format(artifact=artifact, export=export))
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
_ROOMS = {"artifact", "bytecode", "cli", "compat", "dialect", "formats", "manifests", "remote"}
_ROOMS_OF_CHECK = {"aliasing", "api", "gate", "reporting", "stores"}


@pytest.mark.parametrize(
    ("command", "rooms", "most"),
    [
        (["inspect", "{artifact}"], {"aliasing"}, 90),
        (
            ["check", "{artifact}", "--target", "1.0.0", "--isolated"],
            {"aliasing", "api", "gate", "reporting", "stores"},
            130,
        ),
        (["retarget", "{artifact}", "--target", "1.0.0", "-o", "{to}"], {"api", "retargeting"}, 90),
    ],
)
def test_short_commands_load_what_they_use(
    command: list[str], rooms: set[str], most: int, artifact: str, tmp_path: Path
) -> None:
    arguments = [part.format(artifact=artifact, to=tmp_path / "out.mlirbc") for part in command]
    run = f"import sys; sys.argv = {['vhlo', *arguments]!r}; from vhlo_tools.cli.entry import main; main()"
    loaded = modules_after(run) - modules_after("import click")
    beside = {name.partition(".")[0] for name in loaded} - {"importlib", "pathlib", "vhlo_tools"}
    assert beside <= _BESIDE_CLICK
    ours = {name for name in loaded if name.startswith("vhlo_tools.")}
    assert {name.split(".")[1] for name in ours if name.count(".") > 1} <= _ROOMS | rooms
    assert len(ours) <= most
