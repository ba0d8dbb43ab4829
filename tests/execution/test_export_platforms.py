"""Exports of jax for several platforms, run with the arguments of the exported function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.cli.main import main

pytestmark = pytest.mark.every_python

X = np.arange(3, dtype=np.float32)


def exported(*platforms: str, sizes: str = "3") -> jax.export.Exported:
    def function(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 10)

    shape = jax.export.symbolic_shape(sizes)
    jitted = jax.jit(function, donate_argnums=0)
    return jax.export.export(jitted, platforms=platforms)(jax.ShapeDtypeStruct(shape, np.float32))


@pytest.mark.sample(3)
@pytest.mark.parametrize("engine", ["auto", "reference", "xla"])
@pytest.mark.parametrize("sizes", ["3", "n"])
@pytest.mark.parametrize("platforms", [("cpu", "tpu"), ("tpu", "cpu"), ("cuda", "rocm", "cpu"), ("cpu",)])
def test_the_program_for_a_cpu_runs(platforms: tuple[str, ...], sizes: str, engine: Any) -> None:
    export = exported(*platforms, sizes=sizes)
    for program in (export, bytes(export.serialize())):
        np.testing.assert_array_equal(vt.run(program, [X], engine=engine)[0], export.call(X))


def test_a_platform_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = exported("tpu", "cuda")
    data = tmp_path / "two.jax_export"
    data.write_bytes(export.serialize())
    np.testing.assert_array_equal(vt.run(export, [X], platform="cuda")[0], X * 10)
    np.testing.assert_array_equal(vt.run(data, [1, X], platform="any")[0], X * 10)
    assert vt.run_parallel(data, [[X]] * 2, platform="tpu", replicas=2)[1][0].tolist() == [0, 10, 20]
    for call in (vt.run, vt.load_executable):
        with pytest.raises(vt.InvalidInputError, match=r"is an export for tpu and cuda, not for cpu: .*--platform"):
            call(data, *([[X]] if call is vt.run else []))
    assert main(["run", str(data), "-i", "[0, 1, 2]"]) == 2
    assert (
        "an export for tpu and cuda, not for cpu: choose one of these (platform=, --platform)"
        in capsys.readouterr().err
    )
    assert main(["run", str(data), "-i", "[0, 1, 2]", "--platform", "tpu"]) == 0
    assert "[ 0. 10. 20.]" in capsys.readouterr().out


def test_a_platform_of_something_else_is_refused() -> None:
    with pytest.raises(vt.InvalidInputError, match="is an export for cpu, not for tpu"):
        vt.run(exported("cpu"), [X], platform="tpu")
    with pytest.raises(vt.InvalidInputError, match="is no export of jax"):
        vt.run("func.func @main() { return }", [], platform="cpu")


@pytest.mark.long
def test_inputs_are_those_of_the_exported_function() -> None:
    export = exported("tpu", "cpu")
    (drawn,) = vt.draw_inputs(export)
    assert vt.run(export, [drawn])[0].shape == drawn.shape
    donated = X.copy()
    report = vt.load_executable(export).execute([donated], donate=(0,)).report
    assert [(each.placement, each.parameter_number) for each in report.outputs] == [("in-place", 0)]
    # Of all platforms together.
    assert vt.verify(export, vt.serialize(export.serialize())).passed
