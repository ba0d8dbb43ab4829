from __future__ import annotations

import pickle

import pytest

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

F32 = "tensor<4xf32>"
TAN = f"func.func @main(%a: {F32}) -> {F32} {{ %0 = stablehlo.tan %a : {F32} return %0 : {F32} }}"


def raised(program: object, target: str) -> vt.VhloToolsError:
    with pytest.raises(vt.VhloToolsError) as caught:
        vt.serialize(program, target)
    return caught.value


@pytest.mark.parametrize(
    ("program", "target"),
    [
        (TAN, "1.3.0"),
        (TAN, "1.00.0"),
        ("module { foo }", "1.0.0"),
        (b"ML\xefR\x0dStableHLO_v1.0.0\0", "1.0.0"),
        ("", "1.0.0"),
    ],
)
def test_errors_cross_processes_whole(program: object, target: str) -> None:
    error = raised(program, target)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


@pytest.mark.parametrize("source", [None, 3.5, object()])
def test_what_is_no_source_at_all(source: object) -> None:
    with pytest.raises(vt.MalformedArtifactError, match="is not an artifact: expected a path or bytes"):
        vt.open_artifact(source)  # type: ignore[arg-type]
    with pytest.raises(vt.InvalidProgramError, match="is not a program: expected"):
        vt.serialize(source)


@pytest.mark.parametrize("source", ["", "  ", "\n", "\0", "\ud800{"])
def test_texts_that_are_no_programs(source: str) -> None:
    with pytest.raises(vt.InvalidProgramError):
        vt.serialize(source)


def test_views_of_other_things_than_bytes() -> None:
    data = bytes(vt.serialize(TAN))
    spread = memoryview(bytes(byte for each in data for byte in (each, 0)))[::2]
    assert vt.open_artifact(spread).version == vt.open_artifact(data).version
    wide = memoryview(bytearray(data)).cast("c")
    assert vt.serialize(wide, "1.4.0") == vt.serialize(data, "1.4.0")


def test_misuse_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a str is not an MLIR context"):
        vt.deserialize(vt.serialize(TAN), "context")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        vt.run(TAN, 5)  # type: ignore[arg-type]


def test_the_package_says_its_version() -> None:
    assert vt.__version__.count(".") == 2
