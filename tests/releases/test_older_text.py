"""Text that only releases of its time read: which ones do, and what they write of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.releases import PackageRelease, ReleaseProcess, specified_version

pytestmark = pytest.mark.releases

#: The last release that reads lists as tensors, and the first that does not, of each group of ops.
FIRST, OTHERS = ("jaxlib==0.4.21", "jaxlib==0.4.22"), ("jaxlib==0.4.23", "jaxlib==0.4.24")
_PIECES = (Path(__file__).parent / "older_text.mlir").read_text().split("// -----\n\n")[1:]
#: The text of each op, and its releases.
PRINTED = {
    piece.split()[1].rstrip(","): (piece, FIRST if f"until {FIRST[0][-6:]}" in piece else OTHERS) for piece in _PIECES
}


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, ReleaseProcess]]:
    made = {release: ReleaseProcess(release) for release in (*FIRST, *OTHERS)}
    yield made
    for each in made.values():
        each.close()


@pytest.mark.parametrize("name", PRINTED)
def test_a_refusal_names_the_newest_release_that_reads_it(name: str, processes: dict[str, ReleaseProcess]) -> None:
    text, (last, next_one) = PRINTED[name]
    with pytest.raises(vt.InvalidProgramError, match=f"it is older text: --read-with {last} "):
        vt.serialize(text)
    assert vt.serialize(text, "1.0.0", read_with=last).version == vt.Version("1.0.0")
    version = specified_version(PackageRelease.parse(next_one))
    assert not processes[next_one].write([text.encode()], str(version), "text").succeeded


@pytest.mark.parametrize("first", ["dense<[1, 0]> : tensor<2xi64>", "array<i64: 1, 0>"])
def test_a_refusal_looks_at_all_ops_of_the_text(first: str) -> None:
    text = f"""func.func @main(%a: tensor<4xf32>, %t: tensor<2x3xf32>) {{
      %0 = "stablehlo.broadcast_in_dim"(%a) {{broadcast_dimensions = dense<0> : tensor<1xi64>}}
        : (tensor<4xf32>) -> tensor<4x2xf32>
      %1 = "stablehlo.transpose"(%t) {{mhlo.sharding = "{{replicated}}", permutation = {first}}}
        : (tensor<2x3xf32>) -> tensor<3x2xf32>
      return
    }}"""
    with pytest.raises(vt.InvalidProgramError, match="it is older text") as raised:
        vt.serialize(text)
    named = str(raised.value).partition("--read-with ")[2].split()[0]
    assert named == (FIRST if first.startswith("dense") else OTHERS)[0]
    assert vt.serialize(text, "1.0.0", read_with=named)
    with pytest.raises(vt.InvalidProgramError, match="does not read"):
        vt.serialize(text, "1.0.0", read_with=(OTHERS if first.startswith("dense") else FIRST)[0])


@pytest.mark.parametrize(
    "release",
    ["jaxlib==0.4.20", "jaxlib==0.4.23", "jaxlib==0.4.26", "jaxlib==0.4.31", "jaxlib==0.5.3", "jaxlib==0.8.3"],
)
@pytest.mark.parametrize(
    "program", [EXAMPLES / "saxpy.mlir", EXAMPLES / "convnet.bc", EXAMPLES / "tensorflow_counter.mlir"], ids=str
)
def test_what_a_release_printed_is_what_it_wrote(release: str, program: Path) -> None:
    version = str(specified_version(PackageRelease.parse(release)))
    artifact = bytes(vt.serialize(program, version))
    with ReleaseProcess(release) as process:
        printed = process.read(artifact, text=True)
        assert printed.succeeded, printed.words
        written = process.write([artifact], version, "artifact").parts[0]
    assert vt.diff(vt.serialize(printed.value, version, read_with=release), written) == []


def test_what_no_release_reads_is_said_to_be_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.mlir"
    path.write_text("func @main(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n")
    assert main(["serialize", str(path), "-o", f"{path}bc"]) == 2
    assert "no release that reads it writes artifacts, so export the program again" in capsys.readouterr().err
    assert main(["serialize", str(path), "-o", f"{path}bc", "--read-with", FIRST[0]]) == 2
    assert f"{FIRST[0]} does not read {path}: " in capsys.readouterr().err
    assert main(["serialize", str(path), "-o", f"{path}bc", "--read-with", "iree-base-compiler==3.0.0"]) == 2
    assert "writes no artifacts" in capsys.readouterr().err


def test_what_is_no_text_is_read_as_ever() -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0")
    assert bytes(vt.serialize(bytes(artifact), "1.9.0", read_with="jaxlib==0.4.20")) == bytes(artifact)
