"""TOML that is edited as text: values change as they should, and all else stays as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from vhlo_tools.errors import InvalidSpecificationError
from vhlo_tools.spec_tools.toml_editing import Document, array, quoted

TEXT = """\
# The head of the file.
# It has two lines.

# About b.
[[op]]
name = "b"  # [not a table]

[[op.version]]
number = 1
# Why these.
attributes = [
  "x", # the first, ]
  "y" # the last
]  # behind

[op.step.added]
x = "a # b"

# About d.
[[op]]
name = 'd'
names = ["p", 'q']
added = { x = "}" }
none = []
nothing = {}
text = \"\"\"three " quotes\"\"\"
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    path = tmp_path / "file.toml"
    path.write_text(TEXT)
    return Document(path)


def entry(document: Document, name: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {each["name"]: each for each in tomllib.loads(document.text)["op"]}
    return found[name]


def test_tables_are_found(document: Document) -> None:
    assert document.entries("op") == ["b", "d"]
    assert [section.header for section in document.sections("op", "b")] == ["op", "op.version", "op.step.added"]
    version = document.section("op.version", "b")
    lines = TEXT.splitlines()
    assert lines[document.line_of(version) - 1] == "[[op.version]]"
    assert lines[document.line_of(version, "number") - 1] == "number = 1"
    assert lines[document.line_of(version, '"y"') - 1] == '  "y" # the last'
    assert document.line_of(version, "no such") == document.line_of(version)
    assert document.text_of(version).splitlines()[-1] == "]  # behind"
    with pytest.raises(InvalidSpecificationError, match=r"no \[\[op.step\]\] of d was found"):
        document.section("op.step", "d")
    assert document.edit is None


@pytest.mark.parametrize(
    ("header", "name", "key", "items", "line"),
    [
        ("op", "d", "names", ['"r"', '"s"'], """names = ["p", 'q', "r", "s"]"""),
        ("op", "d", "added", ['y = "z"'], 'added = { x = "}", y = "z" }'),
        ("op", "d", "none", ['"r"'], 'none = ["r"]'),
        ("op", "d", "nothing", ['y = "z"'], 'nothing = { y = "z" }'),
        ("op.version", "b", "attributes", ['"z"'], '  "z",'),
    ],
)
def test_items_are_added(header: str, name: str, key: str, items: list[str], line: str, document: Document) -> None:
    before = tomllib.loads(TEXT)
    document.extend(document.section(header, name), key, items)
    assert line in document.text.splitlines()
    changed = [each for each in TEXT.splitlines() if each not in document.text.splitlines()]
    assert len(changed) <= 1
    after = tomllib.loads(document.text)
    assert after != before
    assert entry(document, "d")["text"] == 'three " quotes'
    assert len(entry(document, "b")["version"][0]["attributes"]) == 2 + (header == "op.version")


def test_items_of_several_lines_keep_their_comments(document: Document) -> None:
    document.extend(document.section("op.version", "b"), "attributes", ['"z"', '"zz"'])
    assert '  "x", # the first, ]\n  "y", # the last\n  "z",\n  "zz",\n]  # behind\n' in document.text


@pytest.mark.parametrize(
    ("value", "extended"),
    [
        ('[\n    "a",\n  ]', '[\n    "a",\n  "b",\n  ]'),
        ('["a",\n "c"]', '["a",\n "c",\n  "b",\n]'),
        ("[ # none\n]", '[ # none\n  "b",\n]'),
    ],
)
def test_the_end_of_several_lines_stays_where_it_is(value: str, extended: str) -> None:
    document = Document(Path("no such file"), f'[[op]]\nname = "a"\nitems = {value}\n')
    document.extend(document.section("op", "a"), "items", ['"b"'])
    assert f"items = {extended}\n" in document.text


def test_values_are_replaced(document: Document) -> None:
    document.replace(document.section("op.version", "b"), "attributes", '["new"]')
    document.replace(document.section("op", "d"), "text", '"one"')
    assert '# Why these.\nattributes = ["new"]  # behind\n' in document.text
    assert document.text.endswith('nothing = {}\ntext = "one"\n')
    with pytest.raises(InvalidSpecificationError, match=r"\[op\] of d has no other"):
        document.replace(document.section("op", "d"), "other", "1")


def test_keys_are_added(document: Document) -> None:
    document.add_key(document.section("op", "d"), "first", "1", before="names")
    document.add_key(document.section("op.version", "b"), "last", "2")
    assert "name = 'd'\nfirst = 1\nnames" in document.text
    assert "]  # behind\nlast = 2\n\n[op.step.added]" in document.text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", '# It has two lines.\n\n[[op]]\nname = "a"\n\n# About b.\n[[op]]\nname = "b"'),
        ("c", 'x = "a # b"\n\n[[op]]\nname = "c"\n\n# About d.\n[[op]]\nname = \'d\''),
        ("e", 'quotes"""\n\n[[op]]\nname = "e"\n'),
    ],
)
def test_entries_are_added_in_order(name: str, expected: str, document: Document) -> None:
    document.add_in_order("op", name, f'[[op]]\nname = "{name}"\n')
    assert expected in document.text
    assert [each["name"] for each in tomllib.loads(document.text)["op"]] == sorted(["b", "d", name])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    document = Document(tmp_path / "new.toml", "# Head.\n")
    assert document.entries("op") == []
    document.add_in_order("op", "a", '[[op]]\nname = "a"\n')
    assert document.edit is not None
    assert document.edit.before is None
    assert document.edit.after == '# Head.\n\n[[op]]\nname = "a"\n'
    assert document.edit.diff("new.toml").startswith("--- /dev/null\n+++ new.toml\n")


@pytest.mark.long
@given(strategies.lists(strategies.text()), strategies.lists(strategies.text(), min_size=1), strategies.booleans())
def test_any_array_is_extended(values: list[str], more: list[str], is_long: bool) -> None:
    items = [quoted(value) for value in values]
    written = "[\n" + "".join(f"  {item},\n" for item in items) + "]" if is_long else f"[{', '.join(items)}]"
    document = Document(Path("missing.toml"), f'[[op]]\nname = "a"\nvalues = {written} # ]\nlast = 1\n')
    document.extend(document.section("op", "a"), "values", [quoted(value) for value in more])
    (op,) = tomllib.loads(document.text)["op"]
    assert op == {"name": "a", "values": values + more, "last": 1}


@given(strategies.lists(strategies.text()))
def test_any_array_is_written(values: list[str]) -> None:
    assert tomllib.loads(f"values = {array(values)}")["values"] == values
