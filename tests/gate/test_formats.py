"""Every format of a report, read by a parser that is not ours."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from junitparser import JUnitXml
from sarif_kit.validate import validation_errors
from sarif_pydantic import Sarif
from support.corpus import ROOT
from support.gate_programs import GOOD, blocked, check, write
from support.json_records import body

import vhlo_tools as vt
from vhlo_tools.findings import Finding, SourceLocation
from vhlo_tools.gate import FORMATS, page_of
from vhlo_tools.spec import known_explanations, known_features

# Names that a format must escape, and a control character that XML has no form for.
STRANGE = "a b%,:é\x01.mlir"


#: The summary of the store.
SUMMARY = {"programs": 4, "ok": 1, "unreadable": 1, "blocked": 2, "warned": 0, "unrecognised": 0}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good program, a blocked one, one that cannot be read, and one with a strange name."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.mlir", GOOD)
    write(tmp_path / "blocked.mlir", blocked(10, 20, file="src/model.py"))
    write(tmp_path / "broken.mlir", "module { nonsense }")
    write(tmp_path / STRANGE, blocked(5, file="a b,%:.py"))
    return tmp_path


def report(capsys: pytest.CaptureFixture[str], output_format: str, *arguments: str) -> str:
    code, out, _ = check(capsys, ".", "--target", "1.3.0", "--output-format", output_format, *arguments)
    assert code == 2
    return out


def read_sarif(text: str) -> Any:
    document = json.loads(text)
    assert validation_errors(document) == []
    assert Sarif.model_validate_json(text).runs[0].tool.driver.name == "vhlo-tools"
    return document["runs"][0]


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a command as the runner does (actions/runner, src/Runner.Common/ActionCommand.cs)."""
    match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert match, line

    def unescaped(text: str) -> str:
        for sign, code in ((":", "%3A"), (",", "%2C"), ("\r", "%0D"), ("\n", "%0A"), ("%", "%25")):
            text = text.replace(code, sign)
        return text

    pairs = (each.partition("=") for each in match[2].split(","))
    return match[1], {key: unescaped(value) for key, _, value in pairs}, unescaped(match[3])


def test_the_schema_is_the_one_that_oasis_publishes() -> None:
    """Version 2.1.0 with errata 01, as in oasis-tcs/sarif-spec, sarif-2.1/schema/sarif-schema-2.1.0.json."""
    schema = files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_bytes()
    assert sha256(schema).hexdigest() == "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


def found(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results that are findings."""
    return [each for each in run["results"] if each["ruleId"] != "unreadable"]


def test_sarif(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_sarif(report(capsys, "sarif"))
    rule = run["tool"]["driver"]["rules"][found(run)[0]["ruleIndex"]]
    assert (rule["id"], rule["name"], rule["properties"]["introduced"]) == ("tan", "Tan", "1.4.0")
    assert "sine(x) / cosine(x)" in rule["help"]["text"]
    assert rule["help"]["markdown"].startswith("**The op tan**")
    first, second, third = found(run)
    assert first["properties"] == {"question": "1.3.0", "target": "1.3.0", "introduced": "1.4.0", "op": "stablehlo.tan"}
    assert [each["ruleId"] for each in found(run)] == ["tan"] * 3
    place = first["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 5, "startColumn": 3}
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/model.py"
    assert second["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "blocked.mlir"
    names = [each["name"] for each in third["locations"][0]["logicalLocations"]]
    assert names == ["main", "stablehlo.tan"]
    prints = [each["partialFingerprints"]["vhloFinding/v1"] for each in found(run)]
    assert len(set(prints)) == 3
    assert prints[1].removesuffix(":1") == prints[2].removesuffix(":2")


def test_sarif_names_the_page_of_a_feature_where_the_site_is_known(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "helpUri" not in report(capsys, "sarif")
    monkeypatch.setenv("VHLO_TOOLS_SITE", "javascript:x")
    assert "helpUri" not in report(capsys, "sarif")
    monkeypatch.setenv("VHLO_TOOLS_SITE", "https://docs.example.org/vhlo/")
    (rule,) = (each for each in read_sarif(report(capsys, "sarif"))["tool"]["driver"]["rules"] if each["id"] == "tan")
    assert rule["helpUri"] == "https://docs.example.org/vhlo/specification/features.html#tan"
    assert f"page: {rule['helpUri']}" in check(capsys, "--explain", "tan")[1]


def test_the_page_of_every_finding_is_on_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "site")
    slug = importlib.import_module("pages").slug
    for name in [*(each.id for each in known_features()), *(each.id for each in known_explanations())]:
        assert page_of(name) == f"specification/features.html#{slug(name)}"


def test_sarif_names_files_as_uris(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_sarif(report(capsys, "sarif"))
    uris = [each["location"]["uri"] for each in run["artifacts"]]
    assert [unquote(uri) for uri in uris] == [STRANGE, "blocked.mlir", "broken.mlir", "good.mlir"]
    assert all(uri.isascii() and " " not in uri and not urlsplit(uri).scheme for uri in uris)
    root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert Path(unquote(urlsplit(root).path)) == store
    for result in found(run):
        related = result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
        assert run["artifacts"][related["index"]]["location"]["uri"] == related["uri"]


def test_sarif_says_what_could_not_be_judged(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_sarif(report(capsys, "sarif"))
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    # Also where results alone are shown.
    (result,) = (each for each in run["results"] if each["ruleId"] == "unreadable")
    assert (result["level"], result["message"]) == ("error", notification["message"])
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "unreadable"
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "broken.mlir"
    assert "nonsense" in notification["message"]["text"] or "broken.mlir" in notification["message"]["text"]


def test_sarif_shows_what_is_known_and_what_is_allowed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(capsys, "text", "--baseline", "known.json", "--update-baseline")
    write(store / "blocked.mlir", blocked(10, 15, 20, file="src/model.py"))
    run = read_sarif(report(capsys, "sarif", "--baseline", "known.json"))
    states = [(each["baselineState"], "suppressions" in each) for each in found(run)]
    assert sorted(states) == [("new", False), *[("unchanged", True)] * 3]
    run = read_sarif(report(capsys, "sarif", "--allow", "tan"))
    assert {each["suppressions"][0]["justification"] for each in found(run)} == {"allowed by the settings"}


def test_junit(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(store / "report.xml", report(capsys, "junit", "--target", "1.4.0"))
    suites = JUnitXml.fromfile(str(store / "report.xml"))
    assert (suites.tests, suites.failures, suites.errors) == (7, 2, 1)
    cases = {(case.classname, case.name): case.result for suite in suites for case in suite}
    (failure,) = cases["blocked.mlir", "1.3.0"]
    assert (failure.type, failure.message) == ("tan", "blocked.mlir: 1 error for 1.3.0")
    assert "src/model.py:10:3" in failure.text
    assert cases["blocked.mlir", "1.4.0"] == cases["good.mlir", "1.3.0"] == []
    assert ("a b%,:é\\x01.mlir", "1.3.0") in cases
    assert "broken.mlir" in cases["broken.mlir", "readable"][0].text


def test_github(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [read_command(line) for line in report(capsys, "github").splitlines()]
    assert [name for name, _, _ in commands] == ["error"] * 4
    _, properties, message = commands[1]
    assert properties == {"file": "src/model.py", "line": "10", "col": "3", "title": "vhlo: tan"}
    assert message.startswith("stablehlo.tan needs StableHLO 1.4.0: the op tan\nblocked.mlir for 1.3.0\n")
    assert commands[0][1]["file"] == "a b,%:.py"
    assert commands[3][1] == {"file": "broken.mlir", "title": "vhlo: cannot be checked"}


def test_github_shows_files_from_the_working_directory(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(store / "blocked.mlir", blocked(7, file=str(store / "src" / "model.py")))
    _, out, _ = check(capsys, "blocked.mlir", "--target", "1.3.0", "--output-format", "github")
    assert read_command(out.strip())[1]["file"] == "src/model.py"
    write(store / "blocked.mlir", blocked(7, file="/elsewhere/model.py"))
    _, out, _ = check(capsys, "blocked.mlir", "--target", "1.3.0", "--output-format", "github")
    assert read_command(out.strip())[1]["file"] == "/elsewhere/model.py"


def test_github_says_once_what_many_ops_of_a_line_need(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(store / "blocked.mlir", blocked(7, 7, 8))
    _, out, _ = check(capsys, "blocked.mlir", "--target", "1.3.0", "--warn", "tan", "--output-format", "github")
    commands = [read_command(line) for line in out.splitlines()]
    assert [(name, properties["line"]) for name, properties, _ in commands] == [("warning", "7"), ("warning", "8")]
    assert "the op tan (2 times)\n" in commands[0][2]


def test_github_says_once_what_is_of_the_whole_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'  %{n} = stablehlo.negate %a : tensor<f32> loc("model.py":{n}:1 to :9)' for n in range(1, 9)]
    text = "\n".join(["func.func @main(%a: tensor<f32>) {", *lines, "  return", "}"])
    vt.serialize(text, "1.9.0").save(store / "ranges.mlirbc")
    assert check(capsys, "ranges.mlirbc", "--target", "1.8.0", "--output-format", "github")[:2] == (0, "")
    _, out, _ = check(capsys, "ranges.mlirbc", "--readable-by", "1.8.0", "--output-format", "github")
    ((name, properties, message),) = [read_command(line) for line in out.splitlines()]
    assert (name, properties["line"], properties["title"]) == ("error", "1", "vhlo: range_locations")
    assert "8 times" in message


def test_json_lines(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *rows, end = map(body, report(capsys, "jsonl").splitlines())
    document = body(report(capsys, "json"))
    assert rows == document["files"]
    assert end == {"summary": document["summary"]}
    assert [(row["path"], len(row["findings"])) for row in rows if not row["ok"]] == [
        (STRANGE, 1),
        ("blocked.mlir", 2),
        ("broken.mlir", 0),
    ]


def test_json(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(report(capsys, "json", "--baseline", "known.json", "--update-baseline"))
    by_path = {each["path"]: each for each in document["files"]}
    assert document["summary"] == SUMMARY
    assert by_path["good.mlir"]["ok"]
    assert by_path["broken.mlir"]["reason"]
    assert [each["baseline"] for each in by_path["blocked.mlir"]["findings"]] == ["new", "new"]
    assert by_path["blocked.mlir"]["targets"] == [
        {"target": "1.3.0", "version": "1.3.0", "ok": False, "known": 0, "allowed": 0}
    ]


def test_concise(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = report(capsys, "concise").splitlines()
    assert [line.partition(" stablehlo")[0] for line in lines[:3]] == [
        "a b,%:.py:5:3: tan",
        "src/model.py:10:3: tan",
        "src/model.py:20:3: tan",
    ]
    assert lines[1].endswith(" needs StableHLO 1.4.0: the op tan (blocked.mlir for 1.3.0)")
    assert lines[3].startswith("broken.mlir: unreadable broken.mlir is ")


def test_many_programs_with_the_same_findings_are_one_report(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        write(store / f"alike{number}.mlir", blocked(number + 1, 40, file="src/model.py"))
        write(store / f"torn{number}.mlirbc", "garbage")
    lines = report(capsys, "text", "--exclude", "b*.mlir", "--exclude", STRANGE).splitlines()
    assert lines[:2] == ["good.mlir: ok for 1.3.0", "12 programs: 1 error for 1.3.0"]
    assert lines.count("12 programs: cannot be checked") == 1
    said = " ".join(" ".join(lines).split())
    for name in ("alike", "torn"):
        assert all(f"{name}{number}.mlir" in said for number in range(12))
    # Each place once, and no more than are shown for one program.
    assert "src/model.py:40:3 in @main, 12 times" in said
    assert "and 3 places more" in said
    assert said.endswith("checked 25 programs: 12 cannot be checked, 12 have errors")
    few = ["alike??.mlir", "alike[3-9].mlir", "b*.mlir", STRANGE]
    assert "programs: 1 error" not in report(capsys, "text", *(f"--exclude={each}" for each in few))


def test_gitlab(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fields that GitLab needs, of the types and values in its documentation, "Code Quality report format"."""
    issues = json.loads(report(capsys, "gitlab"))
    assert [each["check_name"] for each in issues] == ["tan", "tan", "tan", "unreadable"]
    assert [each["severity"] for each in issues] == ["major", "major", "major", "critical"]
    assert [(each["location"]["path"], each["location"]["lines"]["begin"]) for each in issues] == [
        ("a b,%:.py", 5),
        ("src/model.py", 10),
        ("src/model.py", 20),
        ("broken.mlir", 1),
    ]
    assert "stablehlo.tan needs StableHLO 1.4.0: the op tan (blocked.mlir for 1.3.0); write" in issues[1]["description"]
    prints = [each["fingerprint"] for each in issues]
    assert len(set(prints)) == 4
    # An edit elsewhere in the file changes lines, and not which findings these are.
    write(store / "blocked.mlir", blocked(11, 21, file="src/model.py"))
    assert [each["fingerprint"] for each in json.loads(report(capsys, "gitlab"))] == prints
    (issue,) = json.loads(check(capsys, STRANGE, "--target", "1.3.0", "--warn", "tan", "--output-format", "gitlab")[1])
    assert issue["severity"] == "minor"


def test_text_has_errors_last_and_warnings_before_them(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(store / "a_warned.mlir", blocked(5, file="model.py"))
    write(store / "vhlo-tools.toml", '[[overrides]]\npaths = ["a_warned.mlir"]\nlevels = { tan = "warn" }\n')
    _, out, _ = check(capsys, ".", "--target", "1.3.0")
    heads = [line for line in out.splitlines() if not line.startswith(" ")]
    assert heads == [
        "good.mlir: ok for 1.3.0",
        "a_warned.mlir: 1 warning for 1.3.0",
        r"a b%,:é\x01.mlir: 1 error for 1.3.0",
        "blocked.mlir: 1 error for 1.3.0",
        "broken.mlir: cannot be checked",
        "checked 5 programs: 1 cannot be checked, 2 have errors, 1 has warnings",
    ]
    _, out, _ = check(capsys, ".", "--target", "1.3.0", "--target", "1.4.0")
    heads = [line for line in out.splitlines() if line and not line.startswith(" ")]
    # A table in the order of the files, and then the same order as with one target.
    table, reasons = heads[:6], heads[6:]
    assert [line.split()[0] for line in table] == [
        *("program", "a", "a_warned.mlir", "blocked.mlir", "broken.mlir", "good.mlir"),
    ]
    assert reasons == [
        "a_warned.mlir: 1 warning for 1.3.0",
        r"a b%,:é\x01.mlir: 1 error for 1.3.0",
        "blocked.mlir: 1 error for 1.3.0",
        "broken.mlir: cannot be checked",
        "checked 5 programs: 1 cannot be checked, 2 have errors, 1 has warnings",
    ]


def test_quiet_text_is_findings_alone(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for targets in (("--target", "1.3.0"), ("--target", "1.3.0", "--target", "1.4.0")):
        _, out, _ = check(capsys, ".", *targets, "--quiet", "--exclude", STRANGE)
        heads = [line for line in out.splitlines() if not line.startswith(" ")]
        assert heads == ["blocked.mlir: 1 error for 1.3.0", "broken.mlir: cannot be checked"]
    assert check(capsys, "good.mlir", "--target", "1.3.0", "-q") == (0, "", "")


def test_colours_are_for_terminals_and_for_those_who_want_them(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    plain = report(capsys, "text")
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = report(capsys, "text")
    assert "blocked.mlir: \x1b[1;31m1 error\x1b[0m for 1.3.0\n\x1b[1;31m  error\x1b[0m: tan, since 1.4.0\n" in coloured
    assert "broken.mlir: \x1b[1;31mcannot be checked\x1b[0m\n" in coloured
    assert "\x1b[1;33m1 warning\x1b[0m" in report(capsys, "text", "--warn", "tan")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    check(capsys, ".", "--target", "1.3.0", "-o", "report.out")
    assert "\x1b" not in (store / "report.out").read_text()
    assert "\x1b" not in report(capsys, "json")
    monkeypatch.setenv("NO_COLOR", "1")
    assert report(capsys, "text", "--exclude", "report.out") == plain


@pytest.mark.parametrize("columns", [1, 40, 60, 80, 132])
def test_text_has_the_width_of_the_terminal(
    columns: int, store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = check(capsys, "blocked.mlir", "--target", "1.3.0")
    longest = max(len(line) for line in out.splitlines())
    assert longest <= max(columns, 55)
    # The remedy is the longest of all, of 112 characters.
    assert (longest > 80) == (columns > 80)


def test_statistics(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert report(capsys, "text", "--statistics").splitlines() == [
        "3  error  tan  the op tan",
        "checked 4 programs: 1 cannot be checked, 2 have errors",
    ]
    assert body(report(capsys, "json", "--statistics")) == {
        "statistics": [{"count": 3, "level": "error", "feature": "tan", "title": "the op tan"}]
    }
    code, _, err = check(capsys, ".", "--target", "1.3.0", "--statistics", "--output-format", "sarif")
    assert (code, "--statistics prints text or json" in err) == (2, True)


def test_files_are_shown_and_nothing_is_checked(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(capsys, ".", "--show-files", "--exclude", STRANGE)
    assert (code, out.splitlines()) == (0, ["blocked.mlir", "broken.mlir", "good.mlir"])
    code, out, _ = check(capsys, "good.mlir", "--show-files", "--output-format", "json")
    assert (code, body(out)) == (0, {"files": ["good.mlir"], "unrecognised": []})
    write(store / "notes.txt", "module of notes")
    code, out, err = check(capsys, ".", "--show-files", "--exclude", STRANGE)
    assert (code, out.splitlines()) == (0, ["blocked.mlir", "broken.mlir", "good.mlir"])
    assert err == "vhlo: notes.txt is no program\n"
    code, out, _ = check(capsys, ".", "--show-files", "--output-format", "json")
    assert json.loads(out)["unrecognised"] == ["notes.txt"]
    code, _, err = check(capsys, "--show-files")
    assert (code, "expected a PATH" in err) == (2, True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("output_format", FORMATS)
def test_a_file_is_what_stdout_would_be(output_format: str, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = report(capsys, output_format)
    write(store / "report.out", "what an earlier run wrote")
    code, out, err = check(
        capsys, ".", "--target", "1.3.0", "--output-format", output_format, "-o", "report.out", "--exclude", "*.out"
    )
    assert (code, out) == (2, "")
    assert (store / "report.out").read_text() == printed
    assert err == "vhlo: checked 4 programs: 1 cannot be checked, 2 have errors; the result is in report.out\n"


@pytest.mark.parametrize("output_format", ["json", "sarif", "gitlab"])
def test_programs_are_reported_as_they_are_examined(output_format: str, store: Path) -> None:
    """With a comma that only the next one shows to be needed; JUnit begins with the number of all."""
    from vhlo_tools.gate import Answer, Scope, render

    taken: list[str] = []

    def answers() -> Iterator[Answer]:
        for number in range(1_000):
            taken.append(f"{number}.mlir")
            yield Answer(taken[-1], error="it is damaged")

    for piece in render(output_format, Scope([], []), answers()):
        if "5.mlir" in piece:
            break
    assert len(taken) < 8


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_report_of_nothing(output_format: str, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, ".", "--target", "1.3.0", "--exclude", "*", "--output-format", output_format)
    assert (code, err) == (0, "vhlo: no programs to check: all are excluded\n")
    if output_format == "sarif":
        assert read_sarif(out)["results"] == []
    elif output_format == "junit":
        assert JUnitXml.fromstring(out.encode()).tests == 0
    elif output_format == "text":
        assert out == "checked 0 programs: no errors\n"
    elif output_format in ("github", "concise"):
        assert out == ""
    else:
        nothing = {"programs": 0, "ok": 0, "unreadable": 0, "blocked": 0, "warned": 0, "unrecognised": 0}
        expected: dict[str, object] = {
            "json": {"files": [], "summary": nothing},
            "jsonl": {"summary": nothing},
            "gitlab": [],
        }
        assert (json.loads(out) if output_format == "gitlab" else body(out)) == expected[output_format]


def test_a_finding_with_a_file_but_no_line_and_no_rule_is_a_result(store: Path) -> None:
    """Such findings are of features that a newer specification has."""
    from vhlo_tools.compat import Target
    from vhlo_tools.gate import Answer, Question, Scope, Verdict, render
    from vhlo_tools.version import Version

    finding = Finding(
        "some_new_thing", "error", "encoding", "It is new. Nobody has seen it.", location=SourceLocation("model.py", 0)
    )
    question = Question(Target("1.0.0", Version("1.0.0"), "as requested", exact=True), reading=True)
    answer = Answer("good.mlir", (Verdict(question, (finding,)),))
    text = "".join(render("sarif", Scope(["good.mlir"], [question], store), [answer]))
    run = read_sarif(text)
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["name"], rule["shortDescription"]) == ("SomeNewThing", {"text": "It is new"})
    assert "region" not in run["results"][0]["locations"][0]["physicalLocation"]


@pytest.mark.parametrize("output_format", ["text", "concise", "jsonl", "github"])
def test_a_program_is_reported_before_the_next_is_judged(
    output_format: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vhlo_tools.gate import Gate, Settings, render
    from vhlo_tools.gate.examination import Examination, Examiner

    judged = []
    settings = Settings(target=("1.3.0",))
    gate = Gate(settings)
    examine = Examiner.examine

    def spied(self: Examiner, *arguments: Any, name: str | None = None, **options: Any) -> Examination:
        judged.append(name)
        return examine(self, *arguments, name=name, **options)

    monkeypatch.setattr(Examiner, "examine", spied)

    # Text has errors last; the other formats have the order of the files.
    files = ["good.mlir", "blocked.mlir"] if output_format == "text" else ["blocked.mlir", "good.mlir"]
    pieces = render(output_format, gate.scope(files), gate.answers(files, lambda path: None))
    assert files[0] in next(pieces)
    assert judged == files[:1]


def test_paths_are_those_of_the_repository(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (store / ".git").mkdir()
    (store / "models" / "src").mkdir(parents=True)
    write(store / "models" / "tan.mlir", blocked(3, file="src/model.py"))
    write(store / "models" / "torn.mlirbc", "<html>")
    monkeypatch.chdir(store / "models")
    github = [read_command(line)[1]["file"] for line in report(capsys, "github").splitlines()]
    assert github == ["models/src/model.py", "models/torn.mlirbc"]
    assert {each["location"]["path"] for each in json.loads(report(capsys, "gitlab"))} == set(github)
    run = read_sarif(report(capsys, "sarif"))
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"] for each in run["results"]]
    assert {each["uri"] for each in places} == set(github)
    root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert Path(unquote(urlsplit(root).path)) == store
