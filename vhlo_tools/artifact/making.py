"""Record of how an artifact was made: the command, the target, the library and the options in its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from vhlo_tools.records import dataclass

#: The value of an option.
Setting = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Making:
    """How an artifact was made; nothing in it depends on the day, the machine, or the paths of files.

    Attributes:
        command: The command, or the function of the same name.
        target: The target as it was given, such as ``jaxlib==0.4.31``; ``None`` if there was none.
        library: The distribution that wrote it, and its version; ``None`` if its bytes were edited without one.
        options: The options that were given, and are not the defaults.
        source: SHA-256 of the bytes that it was made from, as hexadecimal digits; ``None`` if it was no file.
    """

    command: str
    target: str | None = None
    library: str | None = None
    options: Mapping[str, Setting] = field(default_factory=dict)
    source: str | None = None


def given_options(defaults: Mapping[str, object], **options: object) -> dict[str, Setting]:
    """Return changed options as JSON values; ``defaults`` has those other than ``None``, ``False`` or nothing."""
    found: dict[str, Setting] = {}
    for name, value in sorted(options.items()):
        if name in defaults and value == defaults[name]:
            continue
        if name not in defaults and (value is None or value is False or value == ()):
            continue
        if isinstance(value, str | int | float):
            found[name] = value
        elif isinstance(value, set | frozenset):
            found[name] = tuple(sorted(map(str, value)))
        elif isinstance(value, list | tuple):
            found[name] = tuple(map(str, value))
        else:
            found[name] = str(value)
    return found
