"""Files of nothing but one kind of entry: what reading one takes is a multiple of its size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.hostile_shapes import ENTRIES, SHAPES

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bytecode.program import Rows

TESTS = Path(__file__).parents[1]
SIZE = 300_000
# The memory of a file at the most, as a multiple of it, and that of one of nothing but regions and blocks, which have a
# limit of their number.
MULTIPLE = 40
MULTIPLE_OF_BLOCKS = 160
HAVE_BLOCKS = ("block", "region", "function", "successor")
# One kind of field in an entry is like any other: entries are not decoded until they are asked for.
MEASURED = [name for name in ENTRIES if not name.startswith(("attribute ", "type "))]


@pytest.fixture(scope="module")
def peaks() -> dict[str, tuple[int, int]]:
    """The size of the file of each shape, and the memory that it takes at the most to decode every part."""
    code = f"import sys; sys.path[:0] = {[str(TESTS.parent), str(TESTS)]}; import support.forked_measures as it; "
    command = [sys.executable, "-c", f"{code}it.print_peaks({MEASURED}, {SIZE})"]
    return {name: tuple(found) for name, found in json.loads(subprocess.check_output(command)).items()}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel says what a process took")
@pytest.mark.parametrize("shape", MEASURED)
def test_memory_is_a_multiple_of_the_file(shape: str, peaks: dict[str, tuple[int, int]]) -> None:
    size, peak = peaks[shape]
    multiple = MULTIPLE_OF_BLOCKS if any(each in shape for each in HAVE_BLOCKS) else MULTIPLE
    # What a process takes once is no part of it.
    assert peak < multiple * size + (1 << 20)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("empty blocks", "blocks or more; the limit is 262144"),
        ("empty regions", "regions or more; the limit is 262144"),
        ("dialects", "dialects; the limit is 256"),
        ("op names", "op names; the limit is 16384"),
        # These took the square of their size.
        ("long properties of all ops", "an op has properties of 150000 bytes; the limit is 576"),
        ("a long name of all functions", "the signatures of functions have .* characters; the limit is 67108864"),
        ("a long attribute of all arguments", "a nested attribute expands to .* values"),
        ("dimensions of 2^62", "a type has .* dimensions; the limit is 255"),
    ],
)
def test_more_than_any_program_has(shape: str, message: str) -> None:
    with pytest.raises(vt.MalformedArtifactError, match=message):
        inspect_bytes(SHAPES[shape](SIZE), "it")


def test_ops_become_columns_a_few_times_and_not_for_each_function(monkeypatch: pytest.MonkeyPatch) -> None:
    data = SHAPES["functions"](30_000)
    added = 0
    add = Rows.add

    def counted(*arguments: Any) -> None:
        nonlocal added
        added += 1
        add(*arguments)

    monkeypatch.setattr(Rows, "add", counted)
    functions = len(inspect_bytes(data, "it")["functions"])
    assert functions > 500
    assert added < 50 * functions


@pytest.mark.parametrize("number", [255, 256])
def test_dimensions_in_text(number: int, tmp_path: Path) -> None:
    """The library takes the square of them to write a type, in the process of the caller."""
    kind = f"tensor<{'1x' * number}f32>"
    path = tmp_path / "program.mlir"
    path.write_text(f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}")
    if number == 255:
        assert len(vt.serialize(path))
        return
    with pytest.raises(vt.InvalidProgramError, match="has a type of more than 255 dimensions"):
        vt.serialize(path)


def test_dimensions_in_hlo() -> None:
    sizes = ",".join(["2"] * 256)
    text = f"HloModule m, entry_computation_layout={{(f32[{sizes}])->f32[]}}\n\nENTRY e {{\n}}\n"
    with pytest.raises(vt.VhloToolsError, match="an array of f32 has 256 dimensions; the limit is 255"):
        inspect_bytes(text.encode(), "it.hlo")
