"""What commands are to take, and what they took before: data.

The aims, and the figures of before, are those of the issue on growth: whole processes and calls on a program of 100,000
elementwise ops, beside jaxlib alone, and whole processes on one of a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Group = Literal["start", "processes", "calls", "a million ops"]
#: What a figure is: a ratio, seconds, or megabytes (2^20 bytes).
Unit = Literal["of import click", "of the raw script", "of the library", "s", "MB"]


@dataclass(frozen=True, slots=True)
class Aim:
    """Something to be reached."""

    name: str  # what is measured; unique
    group: Group  # which measurement gives it
    subject: str  # the name of the command or of the case (`aim_pairs.CASES`) in that measurement
    unit: Unit  # what the figures are
    most: float | None  # the most that it is to be; ``None`` where nothing is asked, and the figure is for comparison
    before: str = ""  # what it was before the work on growth, as the issue has it; empty if it does not say


_STARTED: Final = ("inspect", "check", "retarget")
_PROCESSES: Final = {
    "inspect": (0.4, "0.83"),
    "retarget down": (0.3, "0.61"),
    "retarget down, a quarter moves": (0.3, ""),
    "strip": (0.4, "1.45"),
    "diff": (0.8, "1.72"),
}
_CALLS: Final[dict[str, tuple[float | None, str]]] = {
    "decode": (0.4, "0.95"),
    "encode": (None, ""),
    "inspect": (None, ""),
    "retarget": (None, ""),
    "strip": (None, ""),
    "diff": (None, ""),
    "requirements, one op in four looked at": (None, "1.1"),
    "a module against all versions": (1.2, "1.8"),
    "a module against all versions, one op in four looked at": (1.2, ""),
    "serialize at the current version": (None, ""),
    "serialize below 1.9.0": (1.05, "1.35"),
    "deserialize, trusted, 64 MB": (None, ""),
    "deserialize, trusted, 100,000 ops": (None, ""),
    "deserialize from elsewhere, 64 MB": (1.3, "2.0 to 2.7"),
    "deserialize from elsewhere, 100,000 ops": (1.5, "2.0 to 2.7"),
    "deserialize again, 64 MB": (1.3, ""),
    "deserialize again, 100,000 ops": (1.5, ""),
}
#: Seconds, and megabytes.
_SECONDS_AND_MEMORY: Final[tuple[Unit, Unit]] = ("s", "MB")
_MILLION: Final = {
    "inspect": ((2.0, "36.7"), (600.0, "1,200")),
    "check": ((2.0, "4.3"), (600.0, "700")),
    "retarget down": ((5.0, "19.4"), (600.0, "1,500")),
    "retarget down, a quarter moves": ((5.0, ""), (600.0, "")),
    "strip": ((5.0, ""), (600.0, "")),
    "diff": ((10.0, ""), (600.0, "")),
}

AIMS: Final = (
    *(Aim(f"start of {each}", "start", each, "of import click", 2.0) for each in _STARTED),
    *(Aim(f"start of {each}, beside the script", "start", each, "of the raw script", 0.5) for each in _STARTED),
    *(
        Aim(f"process: {name}", "processes", name, "of the library", most, before)
        for name, (most, before) in _PROCESSES.items()
    ),
    *(Aim(f"call: {name}", "calls", name, "of the library", most, before) for name, (most, before) in _CALLS.items()),
    *(
        Aim(f"a million ops: {name}, {unit}", "a million ops", name, unit, most, before)
        for name, figures in _MILLION.items()
        for unit, (most, before) in zip(_SECONDS_AND_MEMORY, figures, strict=True)
    ),
)
