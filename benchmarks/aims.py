"""What commands are to take, and what they took before: data.

The aims are those of the issues on growth and on waiting, the figures of before are of the first: whole processes and
calls on a program of 100,000 elementwise ops, beside jaxlib alone, and whole processes on one of a million.
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
    family: str = "ops"  # the programs that it is measured on, as the growth has them

    @property
    def run(self) -> str:
        """The name of what is run."""
        return self.subject if self.family == "ops" else f"{self.subject}, {self.family}"


#: Beside `import click`, and beside the raw script.
_STARTED: Final = {"inspect": (1.5, None), "check": (1.7, None), "retarget": (1.5, 0.45)}
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
    "a module against all versions": (1.1, "1.8"),
    "a module against all versions, one op in four looked at": (1.1, ""),
    "serialize at the current version": (None, ""),
    "serialize below 1.9.0": (1.05, "1.35"),
    "deserialize, trusted, 64 MB": (None, ""),
    "deserialize, trusted, 100,000 ops": (None, ""),
    "deserialize from elsewhere, 64 MB": (1.2, "2.0 to 2.7"),
    "deserialize from elsewhere, 100,000 ops": (1.5, "2.0 to 2.7"),
    "deserialize again, 64 MB": (1.3, ""),
    "deserialize again, 100,000 ops": (1.5, ""),
}
#: Beside the library's round trip, and megabytes.
_TIME_AND_MEMORY: Final[tuple[Unit, Unit]] = ("of the library", "MB")
_MILLION: Final[dict[str, tuple[tuple[float | None, str], tuple[float, str]]]] = {
    "inspect": ((0.15, ""), (600.0, "1,200")),
    "check": ((0.12, ""), (600.0, "700")),
    "retarget down": ((0.2, ""), (600.0, "1,500")),
    "retarget down, a quarter moves": ((None, ""), (600.0, "")),
    "strip": ((None, ""), (600.0, "")),
    "diff": ((None, ""), (600.0, "")),
}
#: The families of programs of constants.
_VALUES: Final = ("a thousand values", "values of their own")
_CONSTANTS: Final[tuple[tuple[Unit, float, str], ...]] = (("s", 3.0, "13"), ("MB", 600.0, ""))

AIMS: Final = (
    *(Aim(f"start of {each}", "start", each, "of import click", most) for each, (most, _) in _STARTED.items()),
    *(
        Aim(f"start of {each}, beside the script", "start", each, "of the raw script", most)
        for each, (_, most) in _STARTED.items()
    ),
    *(
        Aim(f"process: {name}", "processes", name, "of the library", most, before)
        for name, (most, before) in _PROCESSES.items()
    ),
    *(Aim(f"call: {name}", "calls", name, "of the library", most, before) for name, (most, before) in _CALLS.items()),
    *(
        Aim(f"a million ops: {name}, {unit}", "a million ops", name, unit, most, before)
        for name, figures in _MILLION.items()
        for unit, (most, before) in zip(_TIME_AND_MEMORY, figures, strict=True)
    ),
    *(
        Aim(
            f"a million constants, {family}: list, {unit}",
            "a million ops",
            "constants list",
            unit,
            most,
            before,
            family,
        )
        for family in _VALUES
        for unit, most, before in _CONSTANTS
    ),
)
