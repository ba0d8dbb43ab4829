"""An input of the campaign with what is called with it, and the record of what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import vhlo_tools as vt

#: The contents of all seeds, by format.
Seeds = dict[str, list[bytes]]


@dataclass(frozen=True, slots=True)
class Case:
    """An input, and what is called with it.

    Attributes:
        name: What is called, with which format.
        files: The contents of the files of the input, by name.
        run: Called in the folder with the files; tells whether there was an answer, and not a typed error.
        files_raise: Whether an `OSError` is a typed error: what is called takes paths.
        in_memory: Whether what is called takes the contents, and no files are made.
        is_command: Whether the output is checked, and the exit code.
    """

    name: str
    files: dict[str, bytes]
    run: Callable[[Path], bool]
    files_raise: bool = False
    in_memory: bool = False
    is_command: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of the campaign.

    Attributes:
        name: Its name.
        draw: Draws a case from a source of random numbers and the seeds.
        seconds: The limit of a case, in seconds.
        has_children: Whether child processes work for it: its time is that of the clock, and not of the process.
    """

    name: str
    draw: Callable[..., Case]
    has_children: bool = False
    seconds: float = 5.0


def answered(call: Callable[[], object]) -> bool:
    """Call a function; tell whether it returned, and not raised a typed error."""
    try:
        call()
    except vt.VhloToolsError as error:
        # Whatever shows the error may show all of it.
        str(error)
        return False
    return True


def any_answered(calls: Sequence[Callable[[], object]]) -> bool:
    """Call all functions; tell whether the first returned."""
    first, *_ = [answered(call) for call in calls]
    return first
