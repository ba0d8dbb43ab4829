"""The examples are what their scripts make, with the release that their README names."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import EXAMPLES, example_programs, framework_examples
from environments import run_in

PRODUCER = "jax==0.10.2"


@pytest.mark.releases
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_an_example_is_what_its_script_makes(path: Path, tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.path.insert(0, {str(EXAMPLES)!r}); sys.argv = sys.argv[:1] + ['--out', sys.argv[1]]"
    script = EXAMPLES / f"make_{path.stem}.py"
    made = run_in(PRODUCER, f"{code}; runpy.run_path({str(script)!r}, run_name='__main__')", tmp_path)
    assert made.returncode == 0, made.stderr.decode()
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_examples_name_no_path_of_the_machine_they_were_made_on() -> None:
    for path in (*example_programs(), *framework_examples()):
        data = path.read_bytes()
        assert not [name for name in (b"/home/", b"/root/", b"/tmp/", b"site-packages") if name in data], path


def test_the_examples_hold_what_they_are_for() -> None:
    def text(name: str) -> str:
        return (EXAMPLES / name).read_text()

    assert text("transformer_step.mlir").count("tf.aliasing_output") == 25
    assert "sdy.sharding_constraint" in text("sharded_matmul.mlir")
    assert "output_operand_aliases = [#stablehlo.output_operand_alias<" in text("custom_calls.mlir")
