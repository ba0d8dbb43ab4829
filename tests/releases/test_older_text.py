"""Text that only releases of its time read: which ones do, and what they write of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.click_commands import commands_of
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.cli.main import cli, main
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
    [f"jaxlib=={each}" for each in ("0.4.18", "0.4.20", "0.4.23", "0.4.26", "0.4.31", "0.5.3", "0.8.3", "0.12.0.1")],
)
@pytest.mark.parametrize(
    "program", [EXAMPLES / "saxpy.mlir", EXAMPLES / "convnet.bc", EXAMPLES / "tensorflow_counter.mlir"], ids=str
)
def test_what_a_release_printed_is_what_it_wrote(release: str, program: Path) -> None:
    version = str(specified_version(PackageRelease.parse(release)))
    artifact = bytes(vt.retarget(vt.serialize(program), version))
    with ReleaseProcess(release) as process:
        printed = process.read(artifact, text=True)
        assert printed.succeeded, printed.words
        written = process.write([artifact], version, "artifact").parts[0]
    common = str(min(vt.Version(version), get_provider().library.current))
    read = vt.serialize(printed.value, common, read_with=release)
    assert vt.diff(read, vt.retarget(written, common)) == []


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


#: Of each command that has --read-with, its arguments.
_COMMANDS: Final = {
    "alias show": "{text}",
    "check": "{text} --target 1.0.0 --no-cache",
    "compile": "{text} --for libtpu==0.0.52@v5e",
    "diff": "{text} {text}",
    "golden record": "{folder}/golden {text}",
    "inspect": "{text}",
    "matrix": "{text} --producers jaxlib==0.4.31 --consumers jaxlib==0.4.31 --no-run",
    "migrate": "{folder} --target 1.0.0 --verify",
    "report": "{text} -o {folder}/report.html",
    "run": "{text} -i [[1,2,3],[4,5,6]]",
    "serialize": "{text} -o {folder}/written.mlirbc",
    "verify": "{text} {text} --rounds 2",
}
_OLD: Final = """func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.transpose"(%a) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
"""


def test_every_command_that_reads_a_program_is_here() -> None:
    having = [words for words, each in commands_of(cli) if any(one.name == "read_with" for one in each.params)]
    assert sorted(having) == sorted(_COMMANDS)


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_reads_older_text(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "old.mlir"
    text.write_text(_OLD)
    arguments = [*command.split(), *(each.format(text=text, folder=tmp_path) for each in _COMMANDS[command].split())]
    if command not in ("inspect", "matrix"):
        assert main(arguments) != 0
        said = capsys.readouterr()
        assert "it is older text: --read-with" in " ".join((said.out + said.err).split())
    assert main([*arguments, "--read-with", FIRST[0]]) == 0, capsys.readouterr()


def test_aliases_of_older_text_are_compared(tmp_path: Path) -> None:
    text, other = tmp_path / "old.mlir", tmp_path / "now.mlir"
    text.write_text(_OLD)
    other.write_text(_OLD.replace("(%a: tensor<2x3xf32>)", "(%a: tensor<2x3xf32> {jax.buffer_donor = true})"))
    reading = ["--target", "1.0.0", "--no-cache", "--read-with", FIRST[0]]
    assert main(["check", str(text), "--same-aliases-as", str(text), *reading]) == 0
    assert main(["check", str(text), "--same-aliases-as", str(other), *reading]) == 1


def test_what_is_migrated_or_shown_in_python(tmp_path: Path) -> None:
    text = tmp_path / "old.mlir"
    text.write_text(_OLD)
    assert vt.check(text, "1.0.0", read_with=FIRST[0]) == []
    for other in (None, text):
        with pytest.raises(vt.InvalidProgramError, match="it is older text"):
            vt.report(text, other)
        assert vt.report(text, other, read_with=FIRST[0]).html
    (planned,) = vt.plan_migration(tmp_path, "1.0.0", read_with=FIRST[0])
    assert planned.status == "move"
    (moved,) = vt.migrate(tmp_path, "1.0.0", read_with=FIRST[0])
    assert moved.status == "moved"
    written = vt.serialize(text, "1.0.0", read_with=FIRST[0])
    assert vt.diff(tmp_path / "old.mlirbc", written) == []


def test_the_settings_of_a_gate_name_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.mlir").write_text(_OLD)
    (tmp_path / "vhlo-tools.toml").write_text(f'paths = ["old.mlir"]\ntarget = "1.0.0"\nread-with = "{FIRST[0]}"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 0
    (tmp_path / "vhlo-tools.toml").write_text('paths = ["old.mlir"]\ntarget = "1.0.0"\nread-with = "0.4.21"\n')
    assert main(["check"]) == 2
