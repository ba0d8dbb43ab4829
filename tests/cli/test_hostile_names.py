"""Names with commands of CI runners and escapes, through every command in every format of output."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from support.click_commands import commands_of
from support.runner_commands import ANYWHERE, AT_START
from support.vhlo_process import vhlo

import vhlo_tools as vt
from vhlo_tools.cli.main import cli, main
from vhlo_tools.cli.matrix import json_lines, text_lines
from vhlo_tools.cli.reports import encoded
from vhlo_tools.printable import hlo_text, json_text, mlir_text, printable, printable_lines
from vhlo_tools.releases import Cell, Matrix, ReleaseFacts
from vhlo_tools.version import Version

pytestmark = pytest.mark.usefixtures("kept")

PROGRAM = Path(__file__).parents[1] / "programs" / "hostile" / "names_with_escapes.mlir"
#: What follows the names of files. With what they begin with, they have all that the names in the program have.
HOSTILE = (
    "##[error]##vso[task.complete]##teamcity[x]section_start:1:x\r\x1b[0K\n::error::T\n--- T\n+++ T\n^^^ T\n~~~ T"
    "\x07\x9b31m\x85\u202e\u2066\u2028\u2029\x1b]8;;u\x07"
)
#: Formats that are bytes for other programs. To a terminal they are not written.
BINARY = {"bytecode", "hlo-proto"}

#: `P` is the program, `A` its artifact, `B` one with an unknown op, `D` another program, `S` and `Q` stores, `G` golden
#: records, `M` an artifact with a manifest that differs, `N` a name, `O` a file to write. One command line to an item.
COMMANDS = {
    "inspect": ["P", "A", "B", "M", "N", "A --details"],
    "report": ["P -o -", "S -o -", "P D -o -", "B -o -", "N -o -", "A -o - --max-nodes 0", "A -o - --function N"],
    "serialize": ["P --target 0.9.0 -o O", "P -o O", "N -o O", "B -o O", "P -o S"],
    "deserialize": ["A", "A --debug-info", "B", "P", "N"],
    "retarget": ["A --target 0.9.0 -o O", "B --target 0.9.0 -o O", "A --target N -o O", "P --strip-debug-info -o O"],
    "alias clear": ["A -o O"],
    "alias convert": ["A -o O --form module"],
    "alias set": ["A --alias 0=0 -o O", "A --alias N -o O"],
    "alias show": ["A", "P", "B"],
    "constants externalize": ["A -o O --min-size 1", "B -o O"],
    "constants extract": ["A -o O"],
    "constants list": ["A", "B"],
    "constants restore": ["A --weights P -o O", "A --weights N -o O"],
    "manifest check": ["M", "A"],
    "manifest show": ["M", "A"],
    "manifest sign": ["M --private-key N"],
    "manifest write": ["A", "P"],
    "check": [
        *("P --target 0.9.0", "A --target 0.9.0", "B --target 0.9.0", "A --readable-by 1.0.0", "S N --target 0.9.0"),
        *("A B --target 0.9.0 --target 1.0.0", "S --target 0.9.0 --statistics", "A --target N"),
        *("A --target 0.9.0 --show-settings", "--explain N", "A --config N", "A --allow N --target 0.9.0"),
        "A --target 0.9.0 --same-aliases-as P",
    ],
    "migrate": ["S --target 0.9.0", "S --target 0.9.0 --dry-run", "S --target 0.9.0 -o O", "S --target N"],
    "store status": ["S", "S -o O", "N"],
    "targets": ["N"],
    # Before a release is asked for.
    "compile": ["P --for N", "N --for libtpu==0.0.52"],
    "matrix": ["P --producers N --consumers N", "N --sizes --producers jax==N --consumers N"],
    "spec diff": ["N N"],
    "spec import": ["N"],
    "spec lint": ["", "--specs N"],
    "spec list": ["--specs N"],
    "spec new-version": ["N", "99.0.0 --op N --dry-run"],
    "spec probe": ["--specs N"],
    "spec show": ["N"],
    "run": ["P", "A --engine xla", "P --engine reference", "P -i N", "P --handler N=N:N"],
    "diff": ["P A", "A D", "D B"],
    "verify": ["P D", "S Q", "A --engines reference,xla", "P N"],
    "golden check": ["G", "N"],
    "golden record": ["O P", "G A --name N"],
    "opt": [
        *("--canonicalize P", "--stablehlo-legalize-to-vhlo P", "--mlir-print-debuginfo P", "N", "T", "--N P"),
        "--allow-unregistered-dialect T",
    ],
    "translate": ["--serialize --target=0.9.0 T", "--deserialize A --mlir-print-debuginfo", "--interpret P", "N"],
    "shims": ["O", "A"],
    "completion": ["bash", "N"],
}
#: The commands that are programs of their own: a process is started.
PROGRAMS = {"opt", "translate"}


def command_lines() -> Iterator[tuple[str, str]]:
    """Yield each command line, with each format, and the format."""
    for command, parameters in commands():
        choices = [each for each in parameters if {"--format", "--output-format", "--emit"} & set(each.opts)]
        formats = [(f" {each.opts[0]} {form}", form) for each in choices for form in each.type.choices]  # type: ignore[attr-defined]
        for line in COMMANDS[command]:
            yield from ((f"{command} {line}{option}", form) for option, form in formats or [("", "text")])


def commands() -> Iterator[tuple[str, list[click.Parameter]]]:
    return ((words, each.params) for words, each in commands_of(cli))


def assert_harmless(data: bytes, *, own: str = "") -> None:
    """``own`` are the commands at the start of lines that a format has itself."""
    text = data.decode()
    assert not (found := ANYWHERE.search(text)), text[max(found.start() - 200, 0) : found.end() + 50]
    for found in AT_START.finditer(text):
        assert re.match(own or "(?!)", text[found.start() :]), text[found.start() : found.end() + 200]


CHECKS: dict[str, Callable[[bytes], object]] = {
    **dict.fromkeys(("json", "sarif", "gitlab"), json.loads),
    "jsonl": lambda data: list(map(json.loads, data.splitlines())),
    **dict.fromkeys(("junit", "svg"), ElementTree.fromstring),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    names = {
        "P": f"::error::P{HOSTILE}.mlir",
        "A": f"+++ A{HOSTILE}.mlirbc",
        "B": f"~~~ B{HOSTILE}.mlirbc",
        "D": f"^^^ D{HOSTILE}.mlir",
        "M": f" ::error::M{HOSTILE}.mlirbc",
        "T": f"::error::T{HOSTILE}.mlir",
        "N": f"::error::N{HOSTILE}",
        **{each: f"##[error]{each}{HOSTILE}" for each in "SQGO"},
    }
    text = PROGRAM.read_text()
    Path(names["P"]).write_text(text)
    Path(names["D"]).write_text(text.replace("3.0", "7.0").replace("::FN", "::OTHER"))
    escaped = "".join(char if " " <= char <= "~" else f"\\{char.encode().hex()}" for char in HOSTILE if char < "\x80")
    unknown_op = f'"x.{escaped}"(%c, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    Path(names["T"]).write_text(text.replace("stablehlo.add %c, %arg0 : tensor<4xf32>", unknown_op))
    artifact = vt.serialize(names["P"])
    artifact.save(names["A"])
    unknown = bytes(artifact).replace(b"custom_call_v1", b"##[x]\n::e\x1b::--")
    Path(names["B"]).write_bytes(unknown)
    Path(names["M"]).write_bytes(unknown)
    vt.Manifest.of(artifact).save(f"{names['M']}.manifest.json")
    for each, left in (("S", names["P"]), ("Q", names["D"])):
        Path(names[each]).mkdir()
        shutil.copy(names["A"], Path(names[each], f"::error::a{HOSTILE}.mlirbc"))
        shutil.copy(left, Path(names[each], f"\n::error::p{HOSTILE}.mlir"))
        Path(names[each], f"--- broken{HOSTILE}.mlirbc").write_bytes(unknown)
    record = Path(names["G"], f"::error::G{HOSTILE}")
    record.mkdir(parents=True)
    (record / "manifest.json").write_text(json.dumps({"format": HOSTILE}))
    return names


def test_every_command_is_here() -> None:
    assert {words for words, _ in commands()} == set(COMMANDS)


@pytest.mark.parametrize(("line", "form"), list(command_lines()))
def test_nothing_in_a_file_controls_the_output(
    line: str, form: str, files: dict[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = [re.sub(r"\b[A-Z]\b", lambda found: files.get(found[0], found[0]), word) for word in line.split()]
    if words[0] in PROGRAMS:
        done = vhlo(*words)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code = main(words)
        out, err = capfdbinary.readouterr()
    assert code in (0, 1, 2)
    assert b"Traceback" not in err, err
    assert out + err or code == 0
    assert_harmless(err)
    binary = form in BINARY or "--serialize" in words
    if binary:
        return
    assert_harmless(out, own=r"::(?:error|warning|notice) file=[^:]*::" if form == "github" else "")
    # What is listed while it is read ends where there is nothing to read.
    if out and form in CHECKS and "N" not in line.split():
        CHECKS[form](out)
    if (written := Path(files["O"])).is_file() and "migrate" in words:
        assert_harmless(written.read_bytes())


@pytest.mark.parametrize("line", ["migrate S --target 0.9.0 --dry-run", "store status S", "check S --target 0.9.0"])
def test_json_has_the_names_of_files_as_they_are(
    line: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*(files.get(word, word) for word in line.split()), "--output-format", "json"]) in (0, 1, 2)
    found = {each["path"] for each in json.loads(capsys.readouterr().out)["files"]}
    assert len(found) > 1
    assert found <= {str(each) for each in Path(files["S"]).iterdir()}


def test_json_has_the_names_of_functions_as_they_are(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", files["A"], "--output-format", "json"]) == 0
    functions = json.loads(capsys.readouterr().out)["functions"]
    assert functions[1]["name"] == f"../../../../somewhere/pwn\n::error::FN\x1b[31m{HOSTILE}"


def test_programs_mean_what_they_meant(files: dict[str, str], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["deserialize", files["A"], "--debug-info"]) == 0
    printed = capsysbinary.readouterr().out
    assert rb"\23#[error]" in printed
    assert bytes(vt.serialize(printed.decode())) == bytes(vt.Artifact.open(files["A"]))
    assert main(["deserialize", files["A"], "--emit", "hlo-text"]) == 0
    # Octal, as HLO reads escapes.
    assert b"\\043#[error]" in capsysbinary.readouterr().out


def test_a_file_gets_a_program_as_it_is(files: dict[str, str]) -> None:
    assert main(["deserialize", files["A"], "-o", files["O"]]) == 0
    assert b"##[error]" in Path(files["O"]).read_bytes()


def test_a_matrix() -> None:
    facts = ReleaseFacts(HOSTILE, Version("1.9.0"), Version("1.8.0"), {})
    name = f"::error::P{HOSTILE}"
    cell = Cell(name, name, HOSTILE, Version("1.9.0"), True, (HOSTILE,), "refused", False, HOSTILE)
    matrix = Matrix((facts,), (facts,), (name,), (cell,))
    data = b"".join(encoded(json_lines(matrix)))
    assert_harmless(data)
    assert json.loads(data)["cells"][0]["words"] == HOSTILE
    assert_harmless(b"".join(encoded(text_lines(matrix))))


def test_source_lines_of_diagnostics_of_upstream(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @main(%a: tensor\x1b[31m<4xf32>) { return }\n")
    done = vhlo("opt", str(path))
    assert done.returncode == 1
    assert b"tensor\\x1b[31m<4xf32>" in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_commands_for_github_are_ours_alone(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", files["A"], "--target", "0.9.0", "--output-format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(" ")[0] for line in lines} == {"::error", "::notice"}
    assert all(line.isprintable() for line in lines)
    # The properties end at the first `::`; what follows is the message.
    assert all("::" not in line.removeprefix("::").partition("::")[0] for line in lines)


def test_printable() -> None:
    assert printable("é 世 🎉 a\\b") == "é 世 🎉 a\\b"
    assert printable("a\tb\r\n\x1b\x85\u202e\udc80") == "a\\tb\\r\\n\\x1b\\x85\\u202e\\udc80"
    assert printable("# #1 a#b #é ###[ section_start:x section_end:12:") == (
        "# #1 a#b \\x23é \\x23\\x23#[ section_start:x section\\x5fend:12:"
    )
    lines = printable_lines(
        "a\n  ::set-output::x\n##[group]\nb ##vso[task] :: c\n::\n--- a\n---\n  +++ b\n\u034f:\u034f:c"
    )
    assert lines == (
        "a\n  \\x3a:set-output::x\n\\x23#[group]\nb \\x23#vso[task] :: c\n\\x3a:\n\\x2d-- a\n---\n  \\x2b++ b\n"
        "\u034f\\x3a\u034f:c"
    )
    assert printable_lines(lines) == lines


def test_formats_are_exact() -> None:
    for text in (HOSTILE, "\\##\\", "###[", '"##'):
        assert json.loads(json_text([text])) == [text]
        assert printable_lines(json_text([text])) == json_text([text])
    assert mlir_text('@"##[x" #a.b<"#é">') == '@"\\23#[x" #a.b<"\\23é">'
    assert hlo_text('"##vso["') == '"\\043#vso["'
