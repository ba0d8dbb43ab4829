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
    """An input, and what is called with it."""

    name: str  # what is called, with which format
    files: dict[str, bytes]  # the contents of the files of the input, by name
    #: called in the folder with the files; tells whether there was an answer, and not a typed error
    run: Callable[[Path], bool]
    files_raise: bool = False  # whether an `OSError` is a typed error: what is called takes paths
    in_memory: bool = False  # whether what is called takes the contents, and no files are made
    is_command: bool = False  # whether the output is checked, and the exit code


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of the campaign."""

    name: str  # its name
    draw: Callable[..., Case]  # draws a case from a source of random numbers and the seeds
    #: whether child processes work for it: its time is that of the clock, and not of the process
    has_children: bool = False
    seconds: float = 5.0  # the limit of a case, in seconds
    needs: str = ""  # a module that only some environments have


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
