"""Names with escapes and commands of CI runners, through every command that shows what a file contains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.printable import printable, printable_lines

pytestmark = pytest.mark.usefixtures("kept")

PROGRAM = Path(__file__).parents[1] / "programs" / "hostile" / "names_with_escapes.mlir"
#: In each, `P` is the program, `A` its artifact, and `O` a file to write.
COMMANDS = [
    *(f"check {file} --target 0.9.0 --output-format {form}" for file in "PA" for form in ("text", "json", "sarif")),
    *(f"check A --readable-by 1.0.0 --output-format {form}" for form in ("text", "jsonl", "junit")),
    "check A --target 0.9.0 --target 1.0.0",
    *(f"inspect {file} --output-format {form}" for file in "PA" for form in ("text", "json")),
    *("serialize P --target 0.9.0 -o O", "serialize P --target 0.9.0 -o O --output-format json", "serialize P -o O"),
    *("retarget A --target 0.9.0 -o O", "strip A -o O", "deserialize A"),
    *("diff P A", "diff A D", "diff A D --output-format json"),
    *(f"alias {command} A" for command in ("show", "lint", "clear -o O")),
    *("alias show P --output-format json", "alias set A --alias 0=0 -o O"),
    *("constants list A", "constants list A --output-format json"),
    *("constants externalize A -o O --min-size 1", "constants extract A -o O"),
    *("run P", "run P --output-format json", "run P --engine xla", "run P --engine reference"),
    *("verify P D", "golden record O P"),
    *(f"migrate S --target 0.9.0{option}" for option in ("", " --output-format json", " --dry-run")),
    *("store status S", "store status S --output-format json"),
]


def assert_harmless(text: str) -> None:
    for line in text.split("\n"):
        assert line.isprintable(), line
        assert not line.lstrip().startswith("::"), line
        # A name that contains a new line would begin one with what follows it.
        assert not line.lstrip().startswith("\\x3a:"), line
        assert "##[" not in line, line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(PROGRAM, "P.mlir")
    artifact = vt.serialize("P.mlir")
    artifact.save("A.mlirbc")
    Path("D.mlir").write_text(PROGRAM.read_text().replace("3.0", "7.0").replace("::FN", "::OTHER"))
    Path("S").mkdir()
    shutil.copy("A.mlirbc", "S/a.mlirbc")
    shutil.copy("P.mlir", "S/p\n::error::path\x1b[31m.mlir")
    return tmp_path


def arguments(command: str) -> list[str]:
    files = {"P": "P.mlir", "A": "A.mlirbc", "D": "D.mlir", "O": "out", "S": "S"}
    return [files.get(word, word) for word in command.split()]


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_in_a_file_controls_the_output(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(arguments(command))
    out, err = capsys.readouterr()
    assert code in (0, 1, 2)
    assert out + err or code == 0
    assert "Usage:" not in err, err
    assert_harmless(out)
    assert_harmless(err)


@pytest.mark.parametrize(
    "words", [["opt", "--canonicalize", "P.mlir"], ["opt", "--stablehlo-legalize-to-vhlo", "P.mlir"]], ids=" ".join
)
def test_programs_of_upstream(words: list[str], folder: Path) -> None:
    done = vhlo(*words)
    assert_harmless(done.stdout.decode())
    assert_harmless(done.stderr.decode())


def test_source_lines_of_diagnostics_of_upstream(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @main(%a: tensor\x1b[31m<4xf32>) { return }\n")
    done = vhlo("opt", str(path))
    assert done.returncode == 1
    assert b"tensor\\x1b[31m<4xf32>" in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_commands_for_github_are_ours_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "A.mlirbc", "--target", "0.9.0", "--output-format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(" ")[0] for line in lines} == {"::error", "::notice"}
    assert all(line.isprintable() for line in lines)
    # The properties end at the first `::`; what follows is the message.
    assert all("::" not in line.removeprefix("::").partition("::")[0] for line in lines)


def test_json_has_the_names_as_they_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "A.mlirbc", "--output-format", "json"]) == 0
    functions = json.loads(capsys.readouterr().out)["functions"]
    assert functions[1]["name"] == "../../../../somewhere/pwn\n::error::FN\x1b[31m"


def test_printable() -> None:
    assert printable("é 世 🎉 a\\b") == "é 世 🎉 a\\b"
    assert printable("a\tb\r\n\x1b\x85\u202e\udc80") == "a\\tb\\r\\n\\x1b\\x85\\u202e\\udc80"
    lines = printable_lines("a\n  ::set-output::x\n##[group]\nb ##vso[task] :: c\n::")
    assert lines == "a\n  \\x3a:set-output::x\n\\x23#[group]\nb \\x23#vso[task] :: c\n\\x3a:"
