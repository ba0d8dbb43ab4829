"""Programs with the commands that run them in comments, and what these print in order, as tests of lit have it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.opt_programs import Ran, opt, translate

PROGRAMS = Path(__file__).with_name("programs")
COMMANDS = {"opt": opt, "translate": translate}


@dataclass
class Case:
    """A line of commands, and what shall be in what the last of them prints: in order, or not at all."""

    line: str
    wanted: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)


def cases_of(path: Path) -> list[Case]:
    cases: list[Case] = []
    for kind, rest in re.findall(r"^// (RUN|CHECK|CHECK-NOT): +(.*)$", path.read_text(), re.MULTILINE):
        if kind == "RUN":
            cases.append(Case(rest))
        else:
            (cases[-1].wanted if kind == "CHECK" else cases[-1].unwanted).append(rest)
    return cases


CASES = [(path, case) for path in sorted(PROGRAMS.glob("*.mlir")) for case in cases_of(path)]


#: What programs hold that not every library has.
NEEDS = {"scan": [pytest.mark.needs("chlo.scan")]}


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("path", "case"),
    [pytest.param(path, case, id=f"{path.stem}: {case.line}", marks=NEEDS.get(path.stem, ())) for path, case in CASES],
)
def test_a_line_of_commands_does_what_its_program_says(path: Path, case: Case) -> None:
    given = b""
    for part in case.line.split(" | "):
        words = [word.replace("%s", str(path)) for word in shlex.split(part)]
        fails = words[0] == "not"
        name, *arguments = words[fails:]
        ran: Ran = COMMANDS[name](*arguments, text=given)
        assert (ran.code != 0) == fails, ran.error
        given = ran.raw
    printed = ran.raw.decode(errors="replace") + ran.error
    position = 0
    for text in case.wanted:
        assert text in printed[position:], printed
        position = printed.index(text, position) + len(text)
    assert not [text for text in case.unwanted if text in printed]
