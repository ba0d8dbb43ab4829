"""Bytes that end, or keep busy for ever, the process in which MLIR reads them: here that is never this one."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.forked_python import CONVERTING, ForkedPython
from support.large_artifacts import write_artifact_of_ops
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools import limits
from vhlo_tools.api import program_of
from vhlo_tools.bindings import MLIRFailure, Provider, get_provider, isolation
from vhlo_tools.bindings.parse_check import parse_once
from vhlo_tools.cli.main import main
from vhlo_tools.program import screening

pytestmark = pytest.mark.every_python

F32 = "tensor<4xf32>"
TEXT = f"func.func @main(%a: {F32}) -> {F32} {{ %0 = stablehlo.add %a, %a : {F32} return %0 : {F32} }}"

# Bits of the artifact of that program at 1.0.0: those of which jaxlib 0.10.2 and 0.12.0.1 both die, by SIGSEGV and by
# LLVM's own abort; those of which one of them dies, or sometimes, or after it has refused, or by taking all memory; and
# one with which they never end.
KILLERS = [314, 668, 825]
PERHAPS = [305, 306, 308, 666, 681, 888, 1745, 1780]
ENDLESS = 513
#: What becomes of those with which the library never ends: jaxlib 0.8.1 dies of them.
ENDED = r"terminated after {}" if get_provider().release != "0.8.1" else r"crashed with SIGSEGV"


@pytest.fixture(scope="module")
def python() -> Iterator[ForkedPython]:
    with ForkedPython(CONVERTING) as server:
        yield server


def flipped(bit: int) -> bytes:
    data = bytearray(bytes(vt.serialize(TEXT, "1.0.0", trusted=True)))
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def bytecode(raw: RawLibrary) -> bytes:
    pieces: list[bytes] = []
    raw.parse(TEXT).operation.write_bytecode(type("Sink", (), {"write": lambda _, data: pieces.append(bytes(data))})())
    return b"".join(pieces)


@pytest.mark.parametrize("bit", KILLERS)
def test_killers_are_malformed(bit: int) -> None:
    with pytest.raises(vt.MalformedArtifactError, match="crashes or hangs when reading"):
        vt.deserialize(flipped(bit))


@pytest.mark.parametrize("bit", PERHAPS)
def test_what_kills_some_libraries_is_malformed_or_read(bit: int) -> None:
    with suppress(vt.MalformedArtifactError):
        assert vt.deserialize(flipped(bit)).operation.verify()
    # The next, whole, is none the worse for it.
    assert vt.deserialize(bytes(vt.serialize(TEXT, "1.0.0", trusted=True))).operation.verify()


@pytest.mark.parametrize("bit", [314, 668])
def test_the_message_says_what_happened_and_what_to_do(bit: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.mlirbc"
    path.write_bytes(flipped(bit))
    expected = r"bad\.mlirbc \(StableHLO 1\.0\.0\) is damaged: jaxlib .* crashes or hangs when reading"
    reading: list[Callable[[], object]] = [
        lambda: vt.deserialize(path),
        lambda: vt.serialize(path),
        lambda: vt.run(path, [[1.0] * 4]),
        lambda: program_of(path, "hlo-text"),
    ]
    for read in reading:
        with pytest.raises(
            vt.MalformedArtifactError, match=f"{expected}.*SIG(SEGV|ABRT).*regenerate or download the file again"
        ):
            read()
    assert main(["deserialize", str(path)]) == 2


def test_one_that_never_ends_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_SECONDS", 0.3)
    with pytest.raises(vt.MalformedArtifactError, match="the child process (was )?" + ENDED.format(r"0\.3\d* s")):
        vt.deserialize(flipped(ENDLESS))


def test_one_that_never_ends_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    call = isolation.call

    def counted(function: str, *arguments: object, **options: Any) -> Any:
        tried.append(function)
        return call(function, *arguments, **options)

    monkeypatch.setattr(isolation, "call", counted)
    monkeypatch.setattr(limits, "_SECONDS", 0.5)
    # Of another size than others that are tried.
    endless = bytearray(bytes(vt.serialize(TEXT.replace("main", "main_of_this_test", 1), "1.0.0", trusted=True)))
    endless[ENDLESS // 8] ^= 1 << ENDLESS % 8
    with pytest.raises(vt.MalformedArtifactError) as first:
        vt.deserialize(bytes(endless))
    for _ in range(5):
        with pytest.raises(vt.MalformedArtifactError) as again:
            vt.deserialize(bytes(endless))
        assert str(again.value) == str(first.value)
    assert re.search(ENDED.format(r"0\.5\d* s"), str(first.value))
    assert len(tried) == 1
    # Another of the same size is.
    other = bytearray(endless)
    other[ENDLESS // 8] ^= 1 << ENDLESS % 8
    assert vt.deserialize(bytes(other)).operation.verify()
    assert len(tried) == 2


def test_many_ops_are_no_hang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # What a file of any size has makes up for a rate that is too high, up to some hundred thousand ops.
    monkeypatch.setattr(limits, "_SECONDS", 0.0)
    monkeypatch.setenv("VHLO_TOOLS_NO_CACHE", "1")
    write_artifact_of_ops(tmp_path / "ops", 50_000, "1.9.0")
    assert vt.deserialize(tmp_path / "ops").operation.verify()


def test_a_busy_machine_and_a_killed_child_say_nothing_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screening, "_failed", {})
    monkeypatch.setattr(limits, "_SECONDS", 0.3)
    begun = time.monotonic()
    assert screening._tried("support.isolated_functions:process_after", b"waits", 0.6) > 0
    assert time.monotonic() - begun >= 0.6
    with pytest.raises(vt.EngineTimeoutError) as caught:
        screening._tried("support.isolated_functions:hang", b"hangs")
    # As soon as it has had its time of a processor, however busy the machine is.
    assert 0.2 < (caught.value.cpu_seconds or 0) < 1.3
    for number in (signal.SIGKILL, signal.SIGSEGV):
        with pytest.raises(vt.EngineCrashError):
            screening._tried("support.isolated_functions:end_by", number.name.encode(), number)
    assert {error.signal for error in screening._failed.values() if isinstance(error, vt.EngineCrashError)} == {
        "SIGSEGV"
    }
    assert len(screening._failed) == 2


FRAMES = {
    "types": "func.func private @f({})",
    "attributes": "module attributes {{a = {}}} {{}}",
    "locations": "module {{}} loc({})",
    "maps": "func.func private @f(memref<1xf32, affine_map<(d0) -> ({})>>)",
    "HLO": "HloModule m\nENTRY e {{ p = {} parameter(0) }}",
}
NESTING = {
    "types": ("tuple<", "f32", ">"),
    "attributes": ("[", '"]"', "]"),
    "locations": ("callsite(", "unknown", " at unknown)"),
    "maps": ("(", "d0", ")"),
    "HLO": ("(", "f32[]", ")"),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("depth", [10, 100_000])
def test_deep_text_is_no_valid_program(kind: str, depth: int) -> None:
    before, middle, after = NESTING[kind]
    text = FRAMES[kind].format(before * depth + middle + after * depth)
    if depth == 10:
        with suppress(vt.VhloToolsError):  # of what no artifact can represent
            vt.serialize(text)
        return
    with pytest.raises(vt.InvalidProgramError, match="crashes or hangs"):
        vt.serialize(text)


def test_bytecode_that_kills_is_no_valid_program(raw: RawLibrary) -> None:
    data = bytecode(raw)
    assert vt.serialize(data, "1.0.0") == vt.serialize(TEXT, "1.0.0", trusted=True)
    found = set()
    for bit in range(8 * data.index(b"\0", 4), 8 * len(data), 5):
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        try:
            vt.serialize(bytes(wrong), "1.0.0")
        except vt.InvalidProgramError as error:
            found.add("crashes or hangs" in str(error))
        except vt.VhloToolsError:
            continue
        if True in found:
            break
    assert True in found


def test_what_is_trusted() -> None:
    written = vt.serialize(TEXT, "1.0.0", trusted=True)
    assert written.trusted
    assert vt.retarget(written, "1.9.0").trusted
    assert vt.strip(written).trusted
    opened = vt.open_artifact(bytes(written))
    assert not opened.trusted
    assert not vt.retarget(opened, "1.9.0").trusted
    assert not vt.strip(opened).trusted
    vt.deserialize(opened)
    assert opened.trusted


def test_what_is_trusted_starts_no_child(tmp_path: Path) -> None:
    code = f"""
import os
import vhlo_tools as vt
from vhlo_tools.cli.main import main
text = {TEXT!r}
artifact = vt.serialize(text, "1.0.0", trusted=True)
vt.deserialize(artifact)
vt.deserialize(bytes(artifact), trusted=True)
vt.serialize(vt.deserialize(vt.retarget(artifact, "1.9.0")))
vt.serialize(bytes(artifact), trusted=True)
artifact.save("artifact.mlirbc")
for command in (
    "deserialize artifact.mlirbc -o a",
    "serialize artifact.mlirbc -o b",
    "diff artifact.mlirbc a",
    "retarget artifact.mlirbc --engine mlir --target 1.1.0 -o c",
):
    assert main([*command.split(), "--trusted"]) == 0, command
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no children")
assert main("deserialize artifact.mlirbc -o d".split()) == 0
assert os.waitpid(-1, os.WNOHANG) == (0, 0)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("no children\n")


def test_a_refusal_in_the_child_is_told_like_one_here(provider: Provider) -> None:
    data = bytes(vt.serialize(TEXT, "1.0.0", trusted=True)).replace(b"add_v1", b"add_v9")
    with pytest.raises(vt.MalformedArtifactError, match="operation 'vhlo.add_v9'") as screened:
        vt.deserialize(data)
    with pytest.raises(vt.MalformedArtifactError) as trusted:
        vt.deserialize(data, trusted=True)
    assert str(screened.value) == str(trusted.value)
    assert screened.value.diagnostics == trusted.value.diagnostics


def test_the_trial_leaves_no_context_behind(provider: Provider) -> None:
    data = bytes(vt.serialize(TEXT, "1.0.0", trusted=True))
    before = provider.ir.Context._get_live_count()
    parse_once(provider.prefix, memoryview(data), portable=True)
    assert provider.ir.Context._get_live_count() <= before
    with pytest.raises(MLIRFailure):
        parse_once(provider.prefix, memoryview(data)[:-1], portable=True)
    assert provider.ir.Context._get_live_count() <= before


def test_without_a_child_process_the_error_says_how_to_go_on(python: ForkedPython) -> None:
    code = f"""
import sys
import vhlo_tools as vt
data = bytes(vt.serialize({TEXT!r}, trusted=True))
sys.executable = "/no/such/python"
try:
    vt.deserialize(data)
except vt.EngineStartError as error:
    print(error)
vt.deserialize(data, trusted=True)
"""
    result = python.run(code)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("; trusted=True (--trusted) parses in this process instead\n")


DEEP = 50_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("types.mlir", f"func.func @main(%a: {'tuple<' * DEEP}tensor<f32>{'>' * DEEP}) {{ return }}"),
        ("attributes.mlir", f"module attributes {{a = {'[' * DEEP}{']' * DEEP}}} {{}}"),
        ("tuples.hlo", f"HloModule m\nENTRY e {{ ROOT p = {'(' * DEEP}f32[]{')' * DEEP} parameter(0) }}"),
    ],
)
def test_text_that_is_nested_too_deeply_is_no_program(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(vt.InvalidProgramError, match="crashes or hangs|not valid"):
        vt.serialize(path)
    assert main(["check", str(path), "--target", "1.0.0"]) == 2
    assert name in capsys.readouterr().out


# What was read before


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of this test, in which the digests of what was read are kept."""
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE")
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    return tmp_path / "programs-read"


#: Reads a file, and says whether a child process was started for it.
READ = """
import sys
import vhlo_tools as vt
from vhlo_tools.bindings import isolation
isolation.warm = lambda: None
called = []
call = isolation.call
isolation.call = lambda *arguments, **limits: called.append(1) or call(*arguments, **limits)
try:
    {}(sys.argv[1])
except vt.VhloToolsError:
    print("refused", end=" ")
print("tried" if called else "known")
"""


Read = Callable[..., str]


@pytest.fixture
def read(python: ForkedPython) -> Read:
    """Returns what reads a file in a process of its own, and says what became of it."""

    def read_file(path: Path, function: str = "vt.deserialize") -> str:
        done = python.run(READ.format(function), str(path))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    return read_file


def test_what_a_process_has_read_is_not_tried_by_another(read: Read, remembered: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.mlirbc"
    path.write_bytes(bytes(vt.serialize(TEXT, "1.0.0", trusted=True)))
    assert [read(path), read(path)] == ["tried", "known"]
    # Another content.
    path.write_bytes(bytes(vt.serialize(TEXT, "1.1.0", trusted=True)))
    assert [read(path), read(path)] == ["tried", "known"]
    assert remembered.stat().st_size == 2 * 32


def test_bytecode_and_text_are_remembered_too(raw: RawLibrary, read: Read, remembered: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.mlirbc"
    path.write_bytes(bytecode(raw))
    assert [read(path, "vt.serialize"), read(path, "vt.serialize")] == ["tried", "known"]
    path.write_text(TEXT)
    assert [read(path, "vt.serialize"), read(path, "vt.serialize")] == ["tried", "known"]
    assert remembered.stat().st_size == 2 * 32


@pytest.mark.parametrize("bit", KILLERS)
def test_what_is_refused_is_tried_every_time(bit: int, read: Read, remembered: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.mlirbc"
    path.write_bytes(flipped(bit))
    assert [read(path), read(path)] == ["refused tried", "refused tried"]
    assert not remembered.exists()


def test_long_constants_count_by_their_sizes_alone(read: Read, remembered: Path, tmp_path: Path) -> None:
    """What the library does not look at is not compared either: weights that change need no other trial."""
    path = tmp_path / "a.mlirbc"
    states = []
    for values in ("[1.0, 2.0", "[3.0, 4.0"):
        rest = ", ".join(["5.0"] * 4094)
        constant = f"%0 = stablehlo.constant dense<{values}, {rest}]> : tensor<4096xf32>"
        text = f"func.func @main() -> tensor<4096xf32> {{ {constant} return %0 : tensor<4096xf32> }}"
        path.write_bytes(bytes(vt.serialize(text, "1.0.0")))
        states.append(read(path))
    assert states == ["tried", "known"]


def test_another_library_tries_anew(monkeypatch: pytest.MonkeyPatch, remembered: Path) -> None:
    artifact = bytes(vt.serialize(TEXT, "1.0.0", trusted=True))
    provider = get_provider()
    trial = screening.Trial(provider, artifact, portable=True)
    assert trial.needed
    assert trial.run() is None
    assert not trial.needed
    assert not screening.Trial(provider, artifact, portable=True).needed
    assert screening.Trial(provider, artifact, portable=False).needed
    monkeypatch.setitem(provider.__dict__, "build", (("libjax_common.so", 1, 2),))
    assert screening.Trial(provider, artifact, portable=True).needed
    monkeypatch.undo()
    assert remembered.exists()


def test_nothing_is_remembered_if_the_user_says_so(
    monkeypatch: pytest.MonkeyPatch, read: Read, remembered: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("VHLO_TOOLS_NO_CACHE", "1")
    path = tmp_path / "a.mlirbc"
    path.write_bytes(bytes(vt.serialize(TEXT, "1.0.0", trusted=True)))
    assert [read(path), read(path)] == ["tried", "tried"]
    assert not remembered.exists()


def test_types_of_very_many_dimensions_are_refused_before_mlir_converts_them(raw: RawLibrary) -> None:
    text = f"func.func @main(%a: tensor<{'1x' * 256}f32>) {{ return }}"
    pieces: list[bytes] = []
    raw.parse(text).operation.write_bytecode(type("Sink", (), {"write": lambda _, data: pieces.append(bytes(data))})())
    spaced = text.replace("1x1x", "12 x ? x")
    for program in (text, text.encode(), spaced, b"".join(pieces)):
        with pytest.raises(vt.InvalidProgramError, match="255"):
            vt.serialize(program)
    vt.serialize(text.replace("1x", "", 1))
