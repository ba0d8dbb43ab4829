"""Limits on what is written: a file of kilobytes may represent terabytes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.api import extract_constants

SPLATS = Path(__file__).parents[2] / "programs" / "hostile" / "two_thousand_splats_of_1_gib.mlirbc"
TEN = "\n".join(f"  %{number} = stablehlo.constant dense<{number}.0> : tensor<1024xf32>" for number in range(10))
PROGRAM = f"func.func @main() {{\n{TEN}\n  return\n}}\n"


@pytest.mark.parametrize("name", ["out.safetensors", "out"])
def test_too_much_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    said = []
    with pytest.raises(vt.InvalidInputError, match="are 2147483648000 bytes, and at most 8589934592 are written"):
        extract_constants(SPLATS, tmp_path / name, announce=lambda *sizes: said.append(sizes))
    assert said == [(2000, 2000 << 30)]
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_has_not_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=40959))
    with pytest.raises(vt.InvalidInputError, match=rf"40959 are left on the disk of {tmp_path}"):
        extract_constants(vt.serialize(PROGRAM), tmp_path / "below" / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_limit_is_on_the_sum(tmp_path: Path) -> None:
    artifact = vt.serialize(PROGRAM)
    paths = [each.path for each in vt.constants(artifact)]
    with pytest.raises(vt.InvalidInputError, match="are 40960 bytes, and at most 40959"):
        extract_constants(artifact, tmp_path, max_size=40959)
    assert len(extract_constants(artifact, tmp_path, only=paths[:9], max_size=40959)) == 9
    assert len(extract_constants(artifact, tmp_path / "all", max_size=40960)) == 10


def test_no_two_constants_share_a_file(tmp_path: Path) -> None:
    """Names that differ only in what no file name may contain, and names like those that are made of them."""
    names = ["f", "f:", "f-2", "f_", "F", "f-3", "f::", "f-1_0_stablehlo.constant"]
    functions = "\n".join(
        f'func.func @"{name}"() -> tensor<2xf32> {{\n'
        f"  %0 = stablehlo.constant dense<[{number}.0, 9.0]> : tensor<2xf32>\n"
        "  return %0 : tensor<2xf32>\n}"
        for number, name in enumerate(names)
    )
    artifact = vt.serialize(re.sub(r"\n$", "", functions) + "\nfunc.func @main() { return }")
    written = extract_constants(artifact, tmp_path)
    assert len(written) == len(names)
    assert len({str(each.file).lower() for each in written}) == len(names)
    assert len(list(tmp_path.iterdir())) == len(names)
