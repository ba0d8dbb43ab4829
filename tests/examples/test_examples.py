"""The examples are what their scripts make, with the release that their README names."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.corpus import EXAMPLES, example_programs, framework_examples
from support.release_environments import run_in

from vhlo_tools.artifact import JaxContainer
from vhlo_tools.files import read_signature

PRODUCER = "jax==0.10.2"


# Those that run JAX, by way of `_emit`; the tests of other frameworks run theirs.
SCRIPTS = {
    script: [path for path in example_programs() if script in (path.stem, path.parent.name)]
    for script in sorted(
        path.stem.removeprefix("make_") for path in EXAMPLES.glob("make_*.py") if "import _emit" in path.read_text()
    )
}


def test_every_example_has_a_script() -> None:
    assert sorted(path for paths in SCRIPTS.values() for path in paths) == example_programs()


@pytest.mark.releases
@pytest.mark.parametrize("script", SCRIPTS)
def test_examples_are_what_their_scripts_make(script: str, tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.path.insert(0, {str(EXAMPLES)!r}); sys.argv = sys.argv[:1] + ['--out', sys.argv[1]]"
    path = EXAMPLES / f"make_{script}.py"
    made = run_in(PRODUCER, f"{code}; runpy.run_path({str(path)!r}, run_name='__main__')", tmp_path)
    assert made.returncode == 0, made.stderr.decode()
    files = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {path.relative_to(EXAMPLES): path.read_bytes() for path in SCRIPTS[script]}


def test_examples_name_no_path_of_the_machine_they_were_made_on() -> None:
    for path in (*example_programs(), *framework_examples()):
        data = path.read_bytes()
        assert not [name for name in (b"/home/", b"/root/", b"/tmp/", b"site-packages") if name in data], path


def test_the_store_holds_what_it_is_for() -> None:
    def exported(name: str) -> JaxContainer:
        return JaxContainer.open(EXAMPLES / "jax_store" / f"{name}.jax_export")

    assert len(exported("train_step").artifacts[0].inventory().aliases) == 4
    assert read_signature(exported("standardize").export).in_tree == "((f32[rows,columns],), {})"
    assert len(exported("loss").artifacts) == 3
    assert read_signature(exported("gelu").export).main_arguments == ("platform index", "args[0]")
    assert exported("evaluate").export.kept_arguments == (0, 1, 3, 4, 6)
    assert exported("sharded_predict").export.devices == 2


def test_the_examples_hold_what_they_are_for() -> None:
    def text(name: str) -> str:
        return (EXAMPLES / name).read_text()

    assert text("transformer_step.mlir").count("tf.aliasing_output") == 25
    assert "sdy.sharding_constraint" in text("sharded_matmul.mlir")
    assert "output_operand_aliases = [#stablehlo.output_operand_alias<" in text("custom_calls.mlir")
