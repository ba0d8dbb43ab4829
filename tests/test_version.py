from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, strategies as st

from vhlo_tools import InvalidVersionError, Version

pytestmark = pytest.mark.every_python

numbers = st.tuples(*[st.integers(0, 999_999_999)] * 3)


@given(numbers)
def test_text_round_trips(parts: tuple[int, int, int]) -> None:
    text = ".".join(map(str, parts))
    version = Version(text)
    assert str(version) == text
    assert (version.major, version.minor, version.patch) == parts
    assert eval(repr(version)) == version


@given(numbers, numbers)
def test_order_and_hash_are_those_of_the_numbers(a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    left, right = (Version(".".join(map(str, parts))) for parts in (a, b))
    assert (left < right) == (a < b)
    assert (left >= right) == (a >= b)
    assert (left == right) == (a == b)
    assert len({left, right}) == len({a, b})


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "1.2.3.4", "1.00.0", "01.0.0", "1.0.99999999999", "99999999999999999999.0.0", "-1.0.0", "1.-1.0",
     "+1.0.0", "1.0.0 ", " 1.0.0", "1.0.0\n", "v1.0.0", "1.0.0rc1", "1.٠.0", "abc", "1..0"],
)  # fmt: skip
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidVersionError, match="is not a StableHLO version: expected three numbers"):
        Version(text)


def test_a_long_text_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidVersionError) as error:
        Version("9" * 100_000)
    assert len(str(error.value)) < 200


def test_minor_release_drops_the_patch() -> None:
    assert Version("1.8.5").minor_release == Version("1.8.0")
    assert Version("1.8.0").minor_release == Version("1.8.0")


@given(numbers, numbers)
def test_texts_are_compared_as_the_versions_that_they_are(a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    one, other = (".".join(map(str, parts)) for parts in (a, b))
    assert (Version(one) < other) == (one < Version(other)) == (a < b)
    assert (Version(one) >= other) == (one >= Version(other)) == (a >= b)
    assert (Version(one) == other) == (one == Version(other)) == (a == b)
    assert len({Version(one), one, other}) == len({a, b})


def test_a_version_equals_nothing_else() -> None:
    assert Version("1.0.0") != "1.0"
    assert Version("1.0.0") != (1, 0, 0)
    with pytest.raises(InvalidVersionError, match="'1.0' is not a StableHLO version"):
        assert Version("1.0.0") < "1.0"
    with pytest.raises(TypeError):
        assert Version("1.0.0") < (2, 0, 0)


def test_versions_are_pickled_and_copied() -> None:
    version = Version("1.8.5")
    assert pickle.loads(pickle.dumps(version)) == copy.deepcopy(version) == version
    assert str(pickle.loads(pickle.dumps(version))) == "1.8.5"


def test_the_longest_version_and_one_digit_more() -> None:
    nine = "9" * 9
    assert Version(f"{nine}.{nine}.{nine}").patch == 999_999_999
    for longer in (f"{nine}9.{nine}.{nine}", f"{nine}.{nine}.{nine}9", "1" * (1 << 20)):
        with pytest.raises(InvalidVersionError, match="is not a StableHLO version"):
            Version(longer)
