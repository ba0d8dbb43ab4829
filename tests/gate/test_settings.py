"""Settings files: where they are found, what they may say, and what is said of those that say something else."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from support.gate_programs import GOOD, blocked, check, check_json, write

from vhlo_tools.errors import SettingsError
from vhlo_tools.gate import find_settings, load_settings, read_settings

FLEET = 'target = ["fleet"]\n[targets]\nfleet = ["jaxlib==0.4.26", "1.9.0"]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_nearest_file_is_found(folder: Path) -> None:
    project = write(folder / "pyproject.toml", "[tool.vhlo-tools]\n")
    write(folder / "a" / "pyproject.toml", "[tool.other]\n")
    assert find_settings(folder / "a" / "b") == project
    own = write(folder / "a" / "vhlo-tools.toml", "")
    assert find_settings(folder / "a" / "b") == own
    write(folder / "a" / "pyproject.toml", "[tool.vhlo-tools]\n")
    assert find_settings(folder / "a" / "b") == own


def test_no_file_is_no_settings() -> None:
    settings = load_settings()
    assert (settings.file, settings.target, settings.output_format) == (None, (), "text")


def test_everything_that_may_be_set(folder: Path) -> None:
    file = write(
        folder / "repo" / "pyproject.toml",
        """
[tool.vhlo-tools]
paths = ["exports", "more/*.mlir"]
target = ["fleet", "current"]
readable-by = "jaxlib==0.4.31"
exclude = ["scratch/", "!keep.mlir"]
force-exclude = true
allow-other-dialects = true
legalize = false
as-of = 2026-01-31
baseline = "known.json"
output-format = "github"
[tool.vhlo-tools.targets]
fleet = ["jaxlib==0.4.26", "12w"]
[tool.vhlo-tools.levels]
tan = "warn"
"alias_*" = "deny"
[[tool.vhlo-tools.overrides]]
paths = ["exports/legacy/"]
levels = { tan = "allow" }
target = ["1.0.0"]
readable-by = []
""",
    )
    settings = read_settings(file)
    assert settings.paths == ("repo/exports", "repo/more/*.mlir")
    assert settings.readable_by == ("jaxlib==0.4.31",)
    assert settings.as_of == date(2026, 1, 31)
    assert settings.baseline == "repo/known.json"
    assert (settings.force_exclude, settings.allow_other_dialects, settings.legalize) == (True, True, False)
    assert settings.for_file("repo/exports/a.mlir")[:2] == (("fleet", "current"), ("jaxlib==0.4.31",))
    targets, readers, layers = settings.for_file("repo/exports/legacy/a.mlir")
    assert (targets, readers) == (("1.0.0",), ())
    assert layers == [{"tan": "warn", "alias_*": "deny"}, {"tan": "allow"}]
    assert settings.is_excluded("repo/exports/scratch/a.mlir")
    assert not settings.is_excluded("repo/exports/a.mlir")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("taget = []", "s.toml: taget is not a setting: did you mean target?"),
        ("allow_other_dialects = true", "allow_other_dialects is not a setting: did you mean allow-other-dialects?"),
        ("zzz = 1", "zzz is not a setting: expected against, allow-other-dialects, allow-relaxed, allow-signature"),
        ("target = 3", "s.toml: target: expected a list of strings, found 3"),
        ("target = ['1.0.0', 3]", "s.toml: target[1]: expected a string, found 3"),
        ("target = ['1.x']", "s.toml: target[0]: "),
        ("readable-by = ['jaxlib==0.1']", "s.toml: readable-by[0]: jaxlib==0.1 is not a known release: the nearest"),
        ("target = ['flet']\n[targets]\nfleet = ['1.0.0']", "target[0]: 'flet' is not a target"),
        ("target = ['flet']\n[targets]\nfleet = ['1.0.0']", "did you mean fleet?"),
        ("[targets]\nfleet = ['jaxlib==0.4']", "s.toml: targets.fleet[0]: jaxlib==0.4 is not a known release"),
        ("[targets]\nfleet = ['other']\nother = ['1.0.0']", "targets.fleet[0]: 'other' is not a target"),
        ("[targets]\nfleet = []", "targets.fleet: expected at least one target"),
        ("[targets]\ncurrent = ['1.0.0']", "targets.current: expected a name"),
        ("[targets]\n'1.0.0' = ['1.0.0']", 'targets."1.0.0": expected a name'),
        ("legalize = 'no'", "legalize: expected true or false, found 'no'"),
        ("as-of = 'yesterday'", "as-of: expected a day such as 2026-01-31"),
        ("as-of = 2026-01-31T10:00:00", "as-of: expected a day"),
        (
            "output-format = 'sarf'",
            "expected one of text, concise, json, jsonl, github, gitlab, sarif, junit, found 'sarf': did you",
        ),
        ("[levels]\ntanh = 'deny'", "levels.tanh: 'tanh' is not a feature"),
        ("[levels]\ntan = 'forbid'", "levels.tan: expected one of deny, warn, allow, found 'forbid'"),
        ("levels = 'deny'", "levels: expected a table, found 'deny'"),
        ("[[overrides]]\nlevels = {}", "overrides[0].paths: expected at least one pattern, found nothing"),
        ("[[overrides]]\npaths = ['a']\nexclude = []", "overrides[0].exclude is not a setting"),
        ("[[overrides]]\npaths = ['a']\n[[overrides]]\npaths = ['b']\ntarget = ['x']", "overrides[1].target[0]: 'x'"),
        ("exclude = ['!']", "exclude[0]: expected a pattern as in .gitignore, found '!'"),
        ("paths = ['']", "paths[0]: expected a string, found ''"),
        ("target = [", "s.toml: expected TOML: "),
        pytest.param("target = " + "[" * 100_000, "s.toml: expected TOML: it nests too deeply", id="deep"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, folder: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(write(folder / "s.toml", text))
    assert message in str(raised.value)


def test_a_project_without_our_table_and_one_with_a_slip(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "pyproject.toml", "[tool.vhlo_tools]\n")
    write(folder / "m.mlir", GOOD)
    code, _, err = check(capsys, "m.mlir", "--target", "1.0.0")
    assert (code, err) == (2, "vhlo: pyproject.toml: tool.vhlo_tools is not read: did you mean [tool.vhlo-tools]?\n")
    write(folder / "pyproject.toml", "[tool.other]\n")
    code, _, err = check(capsys, "m.mlir", "--config", "pyproject.toml")
    assert (code, err) == (2, "vhlo: pyproject.toml: expected a table [tool.vhlo-tools], found none\n")
    code, _, err = check(capsys, "m.mlir", "--config", "nothing.toml")
    assert (code, err) == (2, "vhlo: nothing.toml: No such file or directory\n")


def test_settings_say_what_is_checked_and_for_whom(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "vhlo-tools.toml", f'paths = ["exports"]\n{FLEET}')
    write(folder / "exports" / "m.mlir", blocked(3))
    code, out, _ = check(capsys)
    assert code == 1
    assert out.startswith("exports/m.mlir: 1 error for fleet (StableHLO ")


def test_the_command_line_wins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        folder / "vhlo-tools.toml", f"{FLEET}[levels]\ntan = 'allow'\n[[overrides]]\npaths = ['*']\ntarget = ['1.0.0']"
    )
    write(folder / "m.mlir", blocked(3))
    assert check(capsys, "m.mlir")[0] == 0
    (file,) = check_json(capsys, "m.mlir", "--target", "1.2.0", "--deny", "tan")["files"]
    assert [(each["target"], each["ok"]) for each in file["targets"]] == [("1.2.0", False)]
    _, out, _ = check(capsys, "m.mlir", "--readable-by", "fleet")
    assert "for read by fleet (StableHLO" in out
    assert check(capsys, "m.mlir", "--target", "1.4.0", "--isolated")[0] == 0
    assert check(capsys, "m.mlir", "--target", "fleet", "--isolated")[0] == 2


def test_named_targets_stand_in_lists(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "vhlo-tools.toml", "[targets]\nnew = ['1.9.0', '1.8.0']\nold = ['1.1.0']\n")
    write(folder / "m.mlir", GOOD)
    (file,) = check_json(capsys, "m.mlir", "--target", "new", "--target", "new,1.2.0,old")["files"]
    assert [each["version"] for each in file["targets"]] == ["1.8.0", "1.1.0"]
    code, _, err = check(capsys, "m.mlir", "--target", "nw")
    assert code == 2
    assert err.endswith("did you mean new?\n")


def test_overrides_ask_other_questions_of_some_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        folder / "vhlo-tools.toml",
        "target = ['1.3.0']\n[[overrides]]\npaths = ['new/']\ntarget = ['1.4.0']\n"
        "[[overrides]]\npaths = ['*legacy*']\nlevels = { op = 'warn' }\n",
    )
    for name in ("new/m.mlir", "m.mlir", "legacy.mlir"):
        write(folder / name, blocked(3))
    code, out, _ = check(capsys, ".")
    assert code == 1
    rows = {line.split()[0]: line.split()[1:] for line in out.split("\n\n")[0].splitlines()}
    assert rows == {
        "program": ["1.3.0", "1.4.0"],
        "legacy.mlir": ["yes", "-"],
        "m.mlir": ["no", "-"],
        "new/m.mlir": ["-", "yes"],
    }
    assert "legacy.mlir: 1 warning for 1.3.0" in out


def test_excluded_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        folder / "vhlo-tools.toml", "target = ['1.3.0']\nexclude = ['old/', '/a/scratch', 'tmp*.mlir', '!a/tmp.mlir']"
    )
    for name in ("old/m.mlir", "a/scratch/m.mlir", "a/tmp.mlir", "tmp.mlir", "tmp_kept/m.mlir", ".venv/lib/m.mlir"):
        write(folder / name, GOOD)

    def files(*arguments: str) -> list[str]:
        return [each["path"] for each in check_json(capsys, *arguments)["files"]]

    assert files(".") == ["a/tmp.mlir", "tmp_kept/m.mlir"]
    assert files("tmp.mlir", "a") == ["tmp.mlir", "a/tmp.mlir"]
    assert files("tmp.mlir", "a", "--force-exclude") == ["a/tmp.mlir"]
    assert files("**/*.mlir", "--exclude", "a/") == ["old/m.mlir", "tmp.mlir", "tmp_kept/m.mlir"]


def test_what_stands_in_no_file_that_is_asked_about(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "m.mlir", GOOD)
    for arguments, message in (
        (["m.mlir"], "expected a PATH, and --target or --readable-by, here or in the settings"),
        (["m.mlir", "--config", "a.toml", "--isolated"], "--config and --isolated exclude each other"),
        (["m.mlir", "--target", "1.0.0", "--deny", "tan", "--allow", "tan"], "--deny and --allow of 'tan'"),
        (["m.mlir", "--target", "1.0.0", "--deny", "tanh"], "command line: tanh: 'tanh' is not a feature"),
        (["m.mlir", "--target", "1.0.0", "--exclude", "!"], "exclude[0]: expected a pattern as in .gitignore"),
        (["m.mlir", "--target", "1.0.0", "-o", "."], ". is a folder"),
        (["--explain", "tan", "--output-format", "sarif"], "--explain prints text or json"),
        (["--show-settings", "--output-format", "junit"], "--show-settings prints text or json"),
        (["m.mlir", "--target", "1.0.0", "--update-baseline"], "expected --baseline FILE"),
    ):
        code, out, err = check(capsys, *arguments)
        assert (code, out) == (2, "")
        assert message in err


def test_settings_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "vhlo-tools.toml", f"{FLEET}[[overrides]]\npaths = ['a/']\nlevels = {{ tan = 'warn' }}")
    write(folder / "a" / "m.mlir", GOOD)
    code, out, _ = check(capsys, "--show-settings", "a", "--allow", "i2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"# {folder / 'vhlo-tools.toml'}"
    assert 'target = ["fleet"]  # vhlo-tools.toml' in lines
    assert 'output-format = "text"  # default' in lines
    assert "# baseline is not set" in lines
    assert "[[overrides]]  # command line" in lines
    assert lines[-4:-2] == ["# a/m.mlir", lines[-3]]
    assert lines[-3].startswith("#   question: fleet (StableHLO ")
    assert lines[-2:] == ["#   warn: tan", "#   allow: i2"]


def test_settings_are_shown_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "vhlo-tools.toml", FLEET)
    write(folder / "m.mlir", GOOD)
    shown = check_json(capsys, "--show-settings", "m.mlir", "--warn", "tan")
    assert shown["file"] == str(folder / "vhlo-tools.toml")
    assert shown["settings"]["target"] == {"value": ["fleet"], "source": "vhlo-tools.toml"}
    assert shown["settings"]["paths"] == {"value": ["m.mlir"], "source": "command line"}
    assert shown["settings"]["legalize"] == {"value": True, "source": "default"}
    (file,) = shown["files"]
    assert file["levels"] == {"tan": "warn"}
    assert file["questions"][0]["question"].startswith("fleet (StableHLO ")


def test_what_is_shown_as_text_can_be_read_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{FLEET}[levels]\n'alias_*' = 'warn'\n[[overrides]]\npaths = ['a/', HOSTILE]\nlevels = {{ tan = 'warn' }}"
    text = text.replace("HOSTILE", r'"\U000E0001é\u009b\u202e\n##[error]"')
    settings = read_settings(write(folder / "vhlo-tools.toml", text))
    again = read_settings(write(folder / "second.toml", check(capsys, "--show-settings")[1]))
    assert json.dumps(again.values(), default=str).replace("second", "vhlo-tools") == json.dumps(
        settings.values(), default=str
    )
