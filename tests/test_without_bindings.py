"""What works with no bindings installed at all, artifacts of the future included."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.forked_python import COMMAND, IMPORTS, ForkedPython
from support.release_environments import run_in

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

# Whatever would import a binding, here or in a module that it imports, fails.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jaxlib", "jax", "torch_mlir", "mlir"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
"""

FUTURE = """
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
import sys
program = '''
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %a, %b, WEAKORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = "stablehlo.custom_call"(%a) {call_target_name = "kernel", result_tilings = [[dense<[4]> : tensor<1xindex>]]}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xi1>
}'''
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
stablehlo.register_dialect(context)
context.load_all_available_dialects()
sys.stdout.buffer.write(stablehlo.serialize_portable_artifact(ir.Module.parse(program, context), "1.22.0"))
"""

READ = """
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
import sys
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
stablehlo.register_dialect(context)
context.load_all_available_dialects()
module = stablehlo.deserialize_portable_artifact(context, sys.stdin.buffer.read())
print(module.operation.get_asm(enable_debug_info=True))
"""


def blocked(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python that is started for it."""
    return subprocess.run([sys.executable, "-c", BLOCKER + COMMAND, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def python() -> Iterator[ForkedPython]:
    """A Python in which nothing could import a binding from the beginning."""
    with ForkedPython(BLOCKER + IMPORTS) as server:
        yield server


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("artifacts") / "a.mlirbc"
    vt.serialize(EXAMPLES / "transformer_step.mlir", "1.4.2").save(path)
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "{artifact}"],
        ["alias", "show", "{artifact}"],
        ["check", "{artifact}", "--target", "1.4.2", "--same-aliases-as", "{artifact}"],
        ["alias", "convert", "{artifact}", "--form", "module", "-o", "{output}"],
        ["inspect", "{artifact}", "--output-format", "json"],
        ["inspect", str(EXAMPLES / "symbolic_export.jax_export")],
        ["deserialize", "{artifact}", "--emit", "vhlo", "--debug-info"],
        ["diff", "{artifact}", "{artifact}", "--locations", "--output-format", "json"],
        ["retarget", "--strip-debug-info", "{artifact}", "-o", "{output}"],
        ["retarget", "{artifact}", "--target", "1.22.0", "-o", "{output}"],
        ["retarget", "{artifact}", "--target", "jaxlib==0.8.3", "-o", "{output}"],
        ["constants", "list", "{artifact}"],
        ["constants", "extract", "{artifact}", "-o", "{output}"],
        ["constants", "externalize", "{artifact}", "-o", "{output}", "--min-size", "0"],
        ["check", "{artifact}", "--target", "1.2.0", "--target", "jaxlib==0.8.3"],
        ["check", "{artifact}", "--readable-by", "jaxlib==0.10.2", "--output-format", "json"],
        ["check", "{artifact}", "--target", "1.2.0", "--output-format", "sarif", "--warn", "op"],
        ["check", "--explain", "tan"],
        ["report", "{artifact}", "-o", "{output}"],
        ["report", "{artifact}", "{artifact}", "-o", "{output}", "--target", "1.2.0"],
        ["report", "{artifact}", "--output-format", "dot"],
        ["spec", "show", "all_reduce"],
        ["spec", "diff", "1.13.0", "1.22.0"],
        ["spec", "lint"],
        ["migrate", "{artifact}", "--target", "1.22.0", "--output-dir", "{output}"],
        ["store", "status", "{artifact}", "--window", "backward", "--horizon", "0d"],
        ["targets"],
        ["targets", "jaxlib==0.4.31,12w"],
    ],
    ids=lambda command: command[0],
)
def test_commands_that_need_none(command: list[str], artifact: str, python: ForkedPython, tmp_path: Path) -> None:
    arguments = [part.format(artifact=artifact, output=tmp_path / "out") for part in command]
    result = python.run(COMMAND, *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout or (tmp_path / "out").exists() or "no violation" in result.stderr


def test_a_command_that_needs_some_says_so(artifact: str) -> None:
    result = blocked("deserialize", artifact)
    assert result.returncode == 2
    assert "no MLIR bindings are installed: install jaxlib" in result.stderr


def test_a_diff_between_versions_needs_none(artifact: str, tmp_path: Path) -> None:
    other = tmp_path / "other.mlirbc"
    vt.serialize(EXAMPLES / "transformer_step.mlir", "1.9.0").save(other)
    result = blocked("diff", artifact, str(other))
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.split() == ["version:", "1", "difference", "-", "1.4.2", "+", "1.9.0"]


@pytest.mark.releases
def test_an_artifact_newer_than_the_installed_library(tmp_path: Path) -> None:
    written = run_in("jaxlib==0.12.0.1", FUTURE)
    assert written.returncode == 0, written.stderr.decode()
    artifact = vt.open_artifact(written.stdout)
    assert artifact.version == vt.Version("1.22.0")
    inventory = artifact.inventory()
    assert inventory.ops["vhlo.custom_call_v2"] == inventory.ops["vhlo.compare_v1"] == 1
    text = artifact.text()
    assert "compare_type = #vhlo<comparison_type_v1 WEAKORDER>" in text
    assert "result_tilings = #vhlo.array_v1<[#vhlo.array_v1<[#vhlo.tensor_v1<" in text
    assert len(vt.strip(artifact)) < len(artifact)


@pytest.mark.releases
def test_an_artifact_of_the_future_is_brought_down(tmp_path: Path) -> None:
    """Written by jaxlib 0.12.0.1, brought down with no bindings, and read by jaxlib 0.10.2 as if C++ had done it."""
    program = FUTURE.replace(", WEAKORDER", "").replace(", result_tilings = [[dense<[4]> : tensor<1xindex>]]", "")
    written = run_in("jaxlib==0.12.0.1", program)
    assert written.returncode == 0, written.stderr.decode()
    new, old = tmp_path / "new.mlirbc", tmp_path / "old.mlirbc"
    new.write_bytes(written.stdout)
    assert b"custom_call_v2" in written.stdout
    result = blocked("retarget", str(new), "--target", "1.17.0", "-o", str(old))
    assert result.returncode == 0, result.stderr
    by_cpp = run_in("jaxlib==0.12.0.1", program.replace('"1.22.0"', '"1.17.0"'))
    read = [run_in("jaxlib==0.10.2", READ, input=data) for data in (old.read_bytes(), by_cpp.stdout)]
    assert [each.returncode for each in read] == [0, 0], read[0].stderr.decode()
    assert b"stablehlo.custom_call @kernel" in read[0].stdout
    assert read[0].stdout == read[1].stdout
    refused = blocked("retarget", str(new), "--target", "0.9.0", "-o", str(tmp_path / "none"))
    assert refused.returncode in (0, 1)
    assert (tmp_path / "none").exists() == (refused.returncode == 0)


# As in a browser, where neither of these is installed.
BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jaxlib", "numpy", "ml_dtypes"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from vhlo_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [["serialize", str(EXAMPLES / "saxpy.mlir"), "-o", "x"], ["run", "{artifact}"]])
def test_a_command_says_what_is_not_installed(command: list[str], artifact: str) -> None:
    given = [each.format(artifact=artifact) for each in command]
    done = subprocess.run([sys.executable, "-c", BARE, *given], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "vhlo: numpy is not installed, and this needs it: `pip install .` in a clone of vhlo_tools installs it\n"
    )


def test_artifacts_need_no_numpy(artifact: str) -> None:
    done = subprocess.run([sys.executable, "-c", BARE, "inspect", artifact], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
