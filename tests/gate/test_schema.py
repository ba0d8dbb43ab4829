"""The JSON schema of settings. Of all files that tests of the gate read, it says what the reader says: conftest.py."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.corpus import ROOT
from support.gate_programs import check, check_json, write
from support.settings_files import has_schema

from vhlo_tools.errors import SettingsError
from vhlo_tools.gate import FORMATS, Settings, read_settings, settings_schema
from vhlo_tools.gate.settings import KINDS, LEVELS
from vhlo_tools.spec import known_explanations, known_features


@pytest.fixture
def schema_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    code, out, err = check(capsys, "--settings-schema")
    assert (code, err) == (0, "")
    return write(tmp_path / "vhlo-tools.schema.json", out)


def test_it_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Settings that cannot be read are what one wants it for.
    write(tmp_path / "vhlo-tools.toml", "taget = 1")
    monkeypatch.chdir(tmp_path)
    assert check_json(capsys, "--settings-schema") == settings_schema()


def test_every_setting_is_described() -> None:
    schema = settings_schema()
    assert schema["properties"].keys() == Settings().values().keys()
    for table in (schema, schema["properties"]["overrides"]["items"]):
        assert table["additionalProperties"] is False
        for key, value in table["properties"].items():
            assert re.fullmatch(r"[A-Z][^`]+(`[^`]+`[^`]*)*\.", value["description"]), key
            assert "  " not in value["description"]
    defaults = {key: value["default"] for key, value in schema["properties"].items() if "default" in value}
    assert defaults == {
        "force-exclude": False,
        "allow-other-dialects": False,
        "legalize": True,
        "expand": False,
        "allow-signature-change": False,
        "require-manifest": False,
        "output-format": "text",
    }


def test_features_kinds_and_formats_are_listed() -> None:
    properties = settings_schema()["properties"]
    levels = properties["levels"]["properties"]
    assert levels.keys() >= {*KINDS, *(each.id for each in known_features())}
    assert levels["tan"] == {"description": "the op tan", "enum": list(LEVELS)}
    assert all(levels[each.id]["description"] for each in known_explanations() if not each.id.endswith("*"))
    assert properties["output-format"]["enum"] == list(FORMATS)
    assert "tan" in properties["expand"]["anyOf"][1]["enum"]
    assert "range_locations" not in properties["expand"]["anyOf"][1]["enum"]


#: What is valid, and what is not: beside the files of the other tests of the gate.
VALID = [
    *("", "target = 'current'", "target = []", "as-of = '2026-01-31'", "as-of = '20260131'", "as-of = '2026-W05-6'"),
    *("as-of = 2026-01-31", "expand = true", "expand = 'all'", "expand = ['tan', 'composite']"),
    *("allow-relaxed = ['all']", "forbid-expansions = ['tan']", "output-format = 'gitlab'"),
    *("[targets]\nfleet = '1.0.0'", "[targets]\ncurrently = ['1.0.0']", "[levels]\nop = 'warn'"),
    *("[levels]\n'*' = 'warn'", "[levels]\n'alias_[a-z]*' = 'allow'", "[levels]\nwithdrawn_anything = 'allow'"),
    *("overrides = []", "[[overrides]]\npaths = 'a'"),
]
INVALID = [
    *("target = ''", "target = [' ']", "readable-by = {}", "as-of = 2026", "as-of = 10:00:00", "as-of = '2026-1-31'"),
    *("expand = 'range_locations'", "expand = 1", "allow-relaxed = true", "forbid-expansions = ['all']"),
    *("output-format = 'xml'", "output-format = ['text']", "legalize = 0", "baseline = ''"),
    *("[targets]\nWEEK_4 = ['1.0.0']", "[targets]\n'a b' = ['1.0.0']", "[targets]\n'é' = ['1.0.0']"),
    *("[targets]\nfleet = [1]", "[levels]\nalias = 'Deny'", "[levels]\nalias = true", "[levels]\nTAN = 'deny'"),
    *("overrides = {}", "[[overrides]]\npaths = []", "[[overrides]]\npaths = ['a']\nlevels = { tan = 'no' }"),
    *("[[overrides]]\npaths = ['a']\nsource = 'here'", "file = 'a'", "sources = {}"),
]


@pytest.mark.parametrize("text", VALID + INVALID)
def test_reader_and_schema_agree(text: str, tmp_path: Path) -> None:
    valid = text in VALID
    assert has_schema(tomllib.loads(text)) == valid
    file = write(tmp_path / "vhlo-tools.toml", text)
    if valid:
        read_settings(file)
    else:
        with pytest.raises(SettingsError):
            read_settings(file)


def settings_on_pages() -> list[Any]:
    """Return the settings in the examples of the documentation, as tables."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for text in re.findall(r"^```toml\n(# \S+\.toml\n.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            table = tomllib.loads(text)
            if text.splitlines()[0].endswith("vhlo-tools.toml"):
                found.append(table)
            elif "vhlo-tools" in table.get("tool", {}):
                found.append(table["tool"]["vhlo-tools"])
    return found


def test_settings_in_the_documentation_have_the_schema() -> None:
    found = settings_on_pages()
    assert len(found) >= 2
    assert all(map(has_schema, found))


def run_check_jsonschema(schema: Path, *files: Path) -> tuple[int, str]:
    checker = import_module("check_jsonschema.cli").main
    result = CliRunner().invoke(checker, ["--schemafile", str(schema), *map(str, files)])
    return result.exit_code, result.output


def test_a_checker_of_toml_takes_the_schema(schema_file: Path, tmp_path: Path) -> None:
    """With dates as TOML has them, as taplo and editors read the file."""
    good = write(tmp_path / "good.toml", "target = 'fleet'\nas-of = 2026-01-31\n[targets]\nfleet = ['12w']\n")
    bad = write(tmp_path / "bad.toml", "taget = 'fleet'\n")
    assert run_check_jsonschema(schema_file, good)[0] == 0
    code, said = run_check_jsonschema(schema_file, bad)
    assert code == 1
    assert "'taget' was unexpected" in said


def test_of_a_pyproject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It knows our table, and lets all others be."""
    schema = write(tmp_path / "schema.json", check(capsys, "--settings-schema", "pyproject.toml")[1])
    other = "[project]\nname = 'x'\n[tool.other]\na = 1\n[tool.vhlo-tools]\n"
    good = write(tmp_path / "good.toml", f"{other}target = '12w'\n")
    bad = write(tmp_path / "bad.toml", f"{other}taget = '12w'\n")
    assert run_check_jsonschema(schema, good)[0] == 0
    code, said = run_check_jsonschema(schema, bad)
    assert code == 1
    assert "'taget' was unexpected" in said
    # As files are sent around alone.
    assert "$ref" not in schema.read_text()
