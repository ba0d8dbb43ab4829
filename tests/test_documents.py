"""JSON and TOML that nobody writes by mistake."""

from __future__ import annotations

import pytest

from vhlo_tools.documents import read_json, read_toml


def test_what_is_json() -> None:
    assert read_json(b'{"a": [1, 2.5, null, {"a": "\xc3\xa9"}]}') == {"a": [1, 2.5, None, {"a": "é"}]}
    assert read_json("-12345678901234567890") == -12345678901234567890
    assert read_json("[Infinity]", not_finite=True) == [float("inf")]
    # A pair of surrogates, and a byte in the name of a file that is not UTF-8, as Python writes it.
    assert read_json(r'["\ud83d\ude00", "\udcff"]') == ["\U0001f600", "\udcff"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nests too deeply"),
        ('{"a":' * 100_000, "nests too deeply"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' occurs twice"),
        ("NaN", "NaN is not a number of JSON"),
        ("[-Infinity]", "-Infinity is not a number of JSON"),
        ("1e999", "larger than any float"),
        ("9" * 5000, "4300 digits"),
        (b"\xff", "utf-8"),
        (b"\xff\xfe1\x00", "utf-8"),
        ("", "Expecting value"),
        (r'{"file": "\ud800"}', r"'\\ud800' is half of a surrogate pair"),
        (r'{"\uDFFF": 1}', r"'\\udfff' is half of a surrogate pair"),
    ],
)
def test_what_is_not_json(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "nests too deeply"),
        ("a = " + "{a = " * 100_000, "nests too deeply"),
        ("a = 1\na = 2", "overwrite"),
        (b"a = '\xff'", "utf-8"),
        ("a = " + "9" * 5000, "4300 digits"),
    ],
)
def test_what_is_not_toml(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_toml(text)
