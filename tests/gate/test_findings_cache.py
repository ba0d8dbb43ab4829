"""Findings of earlier runs: used where nothing has changed, and never where something has."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.forked_python import COMMAND
from support.gate_programs import GOOD, blocked, check, check_json, write
from support.vhlo_process import warm_python

import vhlo_tools as vt
from vhlo_tools.api import resolve_target
from vhlo_tools.gate import FORMATS, Question, findings_cache as cache_context
from vhlo_tools.gate.examination import Examination, Examiner
from vhlo_tools.gate.findings_cache import FindingsCache, context_digest

ASKED = ("--target", "1.3.0")
CONTEXT, OTHER = b"c" * 32, b"o" * 32


@pytest.fixture(autouse=True)
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A folder with two programs as text and one as bytes; return the names of programs as they are examined."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE")
    write(tmp_path / "blocked.mlir", blocked(10, 20))
    write(tmp_path / "good.mlir", GOOD)
    vt.serialize(blocked(30)).save(tmp_path / "artifact.mlirbc")
    names: list[str | None] = []
    examine = Examiner.examine

    def counted(self: Examiner, *arguments: Any, name: str | None = None, **options: Any) -> Examination:
        names.append(name)
        return examine(self, *arguments, name=name, **options)

    monkeypatch.setattr(Examiner, "examine", counted)
    return names


def segments(folder: Path) -> list[Path]:
    return sorted((folder / ".vhlo-cache").glob("*.findings"))


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_second_run_examines_nothing_and_says_the_same(
    output_format: str, examined: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (".", *ASKED, "--output-format", output_format)
    first = check(capsys, *asked)
    assert sorted(examined) == ["artifact.mlirbc", "blocked.mlir", "good.mlir"]
    assert check(capsys, *asked) == first
    assert len(examined) == 3
    assert check(capsys, *asked, "--no-cache") == first
    assert len(examined) == 6


def test_the_folder_is_for_nobody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, ".", *ASKED)
    folder = tmp_path / ".vhlo-cache"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert "vhlo-cache" not in check(capsys, ".", "--show-files")[1]
    (tmp_path / "mine").mkdir()
    check(capsys, ".", *ASKED, "--cache-dir", "mine")
    assert [each.suffix for each in (tmp_path / "mine").iterdir()] == [".findings"]


def test_without_a_cache_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(capsys, ".", *ASKED, "--no-cache")
    monkeypatch.setenv("VHLO_TOOLS_NO_CACHE", "1")
    check(capsys, ".", *ASKED)
    assert not (tmp_path / ".vhlo-cache").exists()


def test_it_stands_beside_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "vhlo-tools.toml", "target = '1.3.0'")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    check(capsys, "../blocked.mlir")
    assert len(segments(tmp_path)) == 1
    assert list((tmp_path / "below").iterdir()) == []


@pytest.mark.parametrize("output_format", FORMATS)
def test_few_small_artifacts_are_examined_without_it_and_found_the_same(
    output_format: str, tmp_path: Path, examined: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    vt.serialize(GOOD).save(tmp_path / "good.mlirbc")
    asked = ("artifact.mlirbc", "good.mlirbc", *ASKED, "--output-format", output_format)
    brief = check(capsys, *asked)
    assert not (tmp_path / ".vhlo-cache").exists()
    assert examined == ["artifact.mlirbc", "good.mlirbc"]
    assert check(capsys, *asked, "--cache-dir", "kept") == brief
    assert list((tmp_path / "kept").glob("*.findings"))


@pytest.mark.parametrize(
    "options",
    [
        ("good.mlir",),
        ("--expand",),
        ("--baseline", "baseline.json"),
        tuple(f"{number}.mlirbc" for number in range(8)),
        ("large.mlirbc",),
    ],
    ids=["text", "expansions", "a baseline", "nine", "a large one"],
)
def test_more_than_few_small_artifacts_are_kept(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(8):
        (tmp_path / f"{number}.mlirbc").write_bytes((tmp_path / "artifact.mlirbc").read_bytes())
    values = ", ".join(str(number) for number in range(20_000))
    large = f"dense<[{values}]> : tensor<20000xi32>"
    vt.serialize(
        f"func.func @main() -> tensor<20000xi32> {{ %0 = stablehlo.constant {large} return %0 : tensor<20000xi32> }}"
    ).save(tmp_path / "large.mlirbc")
    if "--baseline" in options:
        check(capsys, "artifact.mlirbc", *ASKED, *options, "--update-baseline", "--no-cache")
    check(capsys, "artifact.mlirbc", *ASKED, *options)
    assert segments(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        ("--target", "1.2.0"),
        ("--readable-by", "1.3.0"),
        ("--target", "1.3.0", "--expand"),
        ("--target", "1.3.0", "--no-legalize"),
        ("--target", "1.3.0", "--allow-other-dialects"),
    ],
    ids=" ".join,
)
def test_what_the_findings_depend_on(
    options: tuple[str, ...], examined: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, "blocked.mlir", *ASKED)
    asked = check_json(capsys, "blocked.mlir", *options)
    assert examined == ["blocked.mlir"] * 2
    assert asked == check_json(capsys, "blocked.mlir", *options, "--no-cache")


def test_what_they_do_not_depend_on(examined: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "blocked.mlir", *ASKED)[0] == 1
    assert check(capsys, "blocked.mlir", *ASKED, "--warn", "tan")[0] == 0
    assert check(capsys, "blocked.mlir", *ASKED, "--baseline", "known.json", "--update-baseline")[0] == 0
    assert check(capsys, "blocked.mlir", *ASKED, "--baseline", "known.json")[0] == 0
    assert check(capsys, "blocked.mlir", "--target", "1.3.0,1.9.0", "--output-format", "json")[0] == 1
    assert examined == ["blocked.mlir"]


def test_a_window_is_another_question_on_another_day() -> None:
    old, new = (Question(resolve_target("12w", as_of=day)) for day in (date(2024, 6, 1), date(2025, 6, 1)))
    examiner = Examiner()
    assert old.target.version < new.target.version
    assert context_digest(examiner, [old]) != context_digest(examiner, [new])
    assert context_digest(examiner, [old]) == context_digest(Examiner(), [old])
    assert context_digest(examiner, [old]) != context_digest(examiner, [old], facts=True)
    assert context_digest(examiner, [old]) != context_digest(Examiner(provider="jaxlib.mlir"), [old])


def test_another_toolkit_finds_for_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    question = [Question(resolve_target("1.9.0"))]
    before = context_digest(Examiner(), question)
    package = tmp_path / "vhlo_tools"
    write(package / "__init__.py", "")
    for text in ("1", "2"):
        write(package / "compat.py", text)
        monkeypatch.setattr(vt, "__file__", str(package / "__init__.py"))
        cache_context._environment.cache_clear()
        after = context_digest(Examiner(), question)
        assert after != before
        before = after
    write(tmp_path / "dialect_specs" / "features.toml", "")
    cache_context._environment.cache_clear()
    assert context_digest(Examiner(), question) != before
    cache_context._environment.cache_clear()


def test_digests_are_the_same_in_every_process() -> None:
    code = """
from vhlo_tools.gate.findings_cache import context_digest
from vhlo_tools.gate.evaluation import Gate
from vhlo_tools.gate.settings import Settings
gate = Gate(Settings(target=("12w",), readable_by=("jaxlib==0.4.31",), expand=True))
print(context_digest(gate._examiner, gate.questions("a")).hex())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_equal_programs_are_examined_once_but_where_a_finding_names_the_program(
    tmp_path: Path, examined: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    # Places are those of the user's source.
    (tmp_path / "copy.mlirbc").write_bytes((tmp_path / "artifact.mlirbc").read_bytes())
    check(capsys, "artifact.mlirbc", "copy.mlirbc", *ASKED, "--cache-dir", "kept")
    assert examined == ["artifact.mlirbc"]
    # Places are those of the file itself.
    text = re.sub(r" loc\(.*\)", "", blocked(1))
    write(tmp_path / "one.mlir", text)
    write(tmp_path / "two.mlir", text)
    files = check_json(capsys, "one.mlir", "two.mlir", *ASKED)["files"]
    assert [each["findings"][0]["location"] for each in files] == ["one.mlir:3:8", "two.mlir:3:8"]
    before = len(examined)
    assert check_json(capsys, "one.mlir", "two.mlir", *ASKED)["files"] == files
    assert len(examined) == before
    (tmp_path / "one.mlir").rename(tmp_path / "three.mlir")
    (file,) = check_json(capsys, "three.mlir", *ASKED)["files"]
    assert file["findings"][0]["location"] == "three.mlir:3:8"


def test_errors_are_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "bad.mlir", "nonsense")
    assert check(capsys, "bad.mlir", *ASKED)[0] == 2
    assert segments(tmp_path) == []


def test_a_changed_program_is_examined(tmp_path: Path, examined: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "good.mlir", *ASKED)[0] == 0
    before = (tmp_path / "good.mlir").stat()
    text = GOOD.replace("return %a", "%0 = stablehlo.tan %a : tensor<4xf32> return %0")
    write(tmp_path / "good.mlir", text)
    os.utime(tmp_path / "good.mlir", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert check(capsys, "good.mlir", *ASKED)[0] == 1
    assert examined == ["good.mlir"] * 2


def damage(data: bytes) -> dict[str, bytes]:
    decoded = msgspec.msgpack.decode(data[32:], strict=True)
    lies = {
        "other types": [decoded[0], ["x"], {}],
        "another format": [decoded[0] + 1, decoded[1], decoded[2]],
        "no such value": [decoded[0], [], decoded[2]],
        "keys of other types": [decoded[0], decoded[1], {1: [0, 0]}],
        "a value that is no examination": [decoded[0], [b"\x93\x01\x02\x03"], decoded[2]],
        "a level that is none": [decoded[0], [each.replace(b"error", b"fatal") for each in decoded[1]], decoded[2]],
        "a version that is none": [decoded[0], [each.replace(b"1.4.0", b"1.4.x") for each in decoded[1]], decoded[2]],
        "answers to more questions": [decoded[0], [msgspec.msgpack.encode([[[], []], None, None])] * 9, decoded[2]],
    }
    encoded = {name: msgspec.msgpack.encode(each) for name, each in lies.items()}
    signed = {name: hashlib.sha256(each).digest() + each for name, each in encoded.items()}
    deep = b"\x91" * 100_000
    return signed | {
        "empty": b"",
        "cut short": data[:-3],
        "a flipped bit": data[:-1] + bytes([data[-1] ^ 1]),
        "deep": hashlib.sha256(deep).digest() + deep,
        "no digest": data[32:],
    }


def test_a_damaged_cache_is_discarded(tmp_path: Path, examined: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first = check(capsys, ".", *ASKED)
    (segment,) = segments(tmp_path)
    good = segment.read_bytes()
    for name, data in damage(good).items():
        for each in segments(tmp_path):
            each.unlink()
        segment.write_bytes(data)
        examined.clear()
        assert check(capsys, ".", *ASKED) == first, name
        assert examined, name
        examined.clear()
        assert check(capsys, ".", *ASKED) == first, name
        assert examined == [], name


def test_what_is_no_file_is_no_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / ".vhlo-cache"
    folder.mkdir()
    os.mkfifo(folder / "a.findings")
    (folder / "b.findings").mkdir()
    (folder / "c.findings").symlink_to("/dev/zero")
    assert check(capsys, "good.mlir", *ASKED)[0] == 0


def test_a_folder_that_cannot_be_written_costs_time_only(
    tmp_path: Path, examined: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / ".vhlo-cache", "a file")
    for _ in range(2):
        assert check(capsys, "good.mlir", *ASKED) == (0, "good.mlir: ok for 1.3.0\nchecked 1 program: no errors\n", "")
    assert len(examined) == 2
    code, _, err = check(capsys, "good.mlir", *ASKED, "--cache-dir", "good.mlir")
    assert (code, "expected a folder, found a file" in err) == (2, True)


def test_runs_beside_each_other_neither_wait_nor_lose_anything(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"many/{number}.mlir", blocked(number + 1))
    command = ["check", "many", *ASKED, "--output-format", "json"]
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files = [(0, each.fileno(), 2) for each in outputs]
        runs = [warm_python().start(COMMAND, *command, files=each) for each in files]
        assert [each.wait() for each in runs] == [1] * 3
        reports = set()
        for each in outputs:
            each.seek(0)
            reports.add(each.read())
    assert len(reports) == 1
    assert len(json.loads(reports.pop())["files"]) == 30
    assert len(segments(tmp_path)) == 3


def examination(number: int) -> Examination:
    return Examination(((),), digest=hashlib.sha256(b"%d" % number).digest())


def test_many_segments_become_one(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for number in range(12):
        with FindingsCache(folder) as cache:
            assert cache.put(CONTEXT, "name", examination(number))
    assert len(list(folder.glob("*.findings"))) < 12
    cache = FindingsCache(folder)
    for number in range(12):
        digest = examination(number).digest
        assert digest is not None
        assert cache.get(CONTEXT, digest, "other name") == examination(number)
        assert cache.get(OTHER, digest, "name") is None


def test_what_is_not_used_goes(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    old, used = examination(1), examination(2)
    assert old.digest is not None
    assert used.digest is not None
    with FindingsCache(folder, today=100) as cache:
        cache.put(CONTEXT, "name", old)
        cache.put(CONTEXT, "name", used)
    for day in (150, *range(161, 172)):
        with FindingsCache(folder, today=day) as cache:
            assert cache.get(CONTEXT, used.digest, "name") == used
            cache.put(CONTEXT, "name", examination(day))
    cache = FindingsCache(folder, today=172)
    assert cache.get(CONTEXT, used.digest, "name") == used
    assert cache.get(CONTEXT, old.digest, "name") is None
