"""The worked example of VHLO's document: my_op, shown, linted, upgraded, downgraded and refused, without MLIR."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.spec.specification import load_specification
from vhlo_tools.spec.version_steps import OpStructure, downgrade, upgrade

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "examples" / "specs" / "README.md").read_text()
SPECS = load_specification(ROOT / "examples" / "specs" / "my_op")
TENSOR = {"type": "tensor_v1", "shape": [4], "element": {"type": "f32_v1"}}
OLD = OpStructure("my_op_v1", {}, operands=(TENSOR,), results=(TENSOR,))


def with_attr(value: object) -> OpStructure:
    return OpStructure("my_op_v2", {"attr": {"attribute": "bool_v1", "value": value}}, (TENSOR,), (TENSOR,))


def test_my_op_goes_up_with_the_default() -> None:
    assert upgrade(OLD, vt.Version("0.10.0"), SPECS) == OLD
    assert upgrade(OLD, vt.Version("0.11.0"), SPECS) == with_attr(False)


@pytest.mark.parametrize("version", ["0.9.0", "0.10.0"])
def test_my_op_goes_down_only_with_the_default(version: str) -> None:
    assert downgrade(with_attr(False), vt.Version(version), SPECS) == OLD
    with pytest.raises(vt.DowngradeError) as refused:
        downgrade(with_attr(True), vt.Version(version), SPECS)
    assert str(refused.value) == (
        f"my_op_v2 cannot be downgraded to StableHLO {version}\n"
        f"  my_op cannot be in {version}: attr is not its default, false; "
        "attr of my_op needs StableHLO 0.11.0 (my_op_attr)\n"
        "    leave attr at its default, false; or choose 0.11.0 or later"
    )
    assert downgrade(with_attr(True), vt.Version("0.11.0"), SPECS) == with_attr(True)


def test_python_of_the_readme_needs_no_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    check = "import sys; assert not {'jaxlib', 'jax', 'mlir', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}\n{check}"], check=True)
