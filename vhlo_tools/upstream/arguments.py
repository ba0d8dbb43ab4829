"""Command-line arguments parsed as by LLVM's programs, with a table of options.

Source: ``llvm/lib/Support/CommandLine.cpp`` in llvm/llvm-project: one dash or two, a value after ``=`` or, if an option
requires one, as the next argument; ``--`` ends the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

from vhlo_tools.records import dataclass

#: ``flag``: a boolean, true without a value. ``value``: requires a value. ``optional``: accepts one only after ``=``.
Kind = Literal["flag", "value", "optional"]

_TRUTHS: Final = {"true": True, "TRUE": True, "True": True, "1": True, "": True}
_FALSEHOODS: Final = {"false": False, "FALSE": False, "False": False, "0": False}
_UINT: Final = 1 << 32
_DIGITS: Final = 20
_WIDTH: Final = 52


class UsageError(Exception):
    """Invalid arguments; the message names the argument and the accepted values."""


@dataclass(frozen=True, slots=True)
class Option:
    name: str  # without dashes
    description: str = ""
    kind: Kind = "flag"
    value: str = "string"  # the name of its value in the help
    choices: tuple[str, ...] = ()  # empty if it accepts any value
    is_number: bool = False  # an unsigned number of 32 bits
    is_hidden: bool = False  # only ``--help-hidden`` lists it
    is_secret: bool = False  # listed nowhere
    alias: str = ""


@dataclass(slots=True)
class Arguments:
    values: dict[str, str] = field(default_factory=dict)  # the last value if an option is given several times
    #: options that are not in the table, each with its value
    others: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def flag(self, name: str, *, default: bool = False) -> bool:
        return default if name not in self.values else truth_of(self.values[name]) is True

    def number(self, name: str) -> int | None:
        return int(self.values[name]) if name in self.values else None

    def text(self, name: str, default: str | None = None) -> str | None:
        return self.values.get(name, default)


def parse_arguments(
    arguments: Sequence[str],
    sections: Mapping[str, Iterable[Option]],
    takes: Callable[[str], bool] = lambda name: False,
    known: Callable[[], Iterable[str]] = tuple,
) -> Arguments:
    """Parse arguments without the name of the program; ``sections`` has the options by section title.

    ``takes`` accepts additional names (a flag or ``=`` value), and ``known`` lists them for suggestions after a
    mistyped one.
    """
    table = {
        name: each for options in sections.values() for each in options for name in (each.name, each.alias) if name
    }
    read = Arguments()
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            read.files.extend(rest)
        elif argument == "-" or not argument.startswith("-"):
            read.files.append(argument)
        else:
            name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
            if option := table.get(name):
                if option.kind == "value" and not equals:
                    if (following := next(rest, None)) is None:
                        raise UsageError(f"for the --{option.name} option: requires a value!")
                    value = following
                read.values[option.name] = _checked(option, value)
            elif takes(name):
                read.others.append((name, value))
            else:
                raise UsageError(_unknown(argument, name, [*table, *known()], table))
    return read


def _checked(option: Option, value: str) -> str:
    if option.kind == "flag" and truth_of(value) is None:
        raise UsageError(f"for the --{option.name} option: '{value}' is invalid value for boolean argument! Try 0 or 1")
    if option.is_number and not (value.isdecimal() and len(value) < _DIGITS and int(value) < _UINT):
        raise UsageError(f"for the --{option.name} option: '{value}' value invalid for uint argument!")
    if option.choices and value not in option.choices:
        takes = ", ".join(each for each in option.choices if each)
        raise UsageError(f"for the --{option.name} option: Cannot find option named '{value}'! It takes {takes}.")
    return value


def truth_of(value: str) -> bool | None:
    return _TRUTHS.get(value, _FALSEHOODS.get(value))


def _unknown(argument: str, name: str, known: Sequence[str], table: Mapping[str, Option]) -> str:
    # Not imported at the top: it is rarely needed, and would slow down each start.
    import difflib

    listed = [each for each in known if each not in table or not table[each].is_secret]
    near = difflib.get_close_matches(name, listed, 1)
    guess = f"  Did you mean '--{near[0]}'?" if near else ""
    return f"Unknown command line argument '{argument}'.{guess}  Try '--help'."


def help_text(overview: str, usage: str, sections: Mapping[str, Iterable[Option]], hidden: bool) -> str:
    lines = [f"OVERVIEW: {overview}", "", f"USAGE: {usage}", "", "OPTIONS:"]
    for title, options in sections.items():
        shown = [each for each in options if not each.is_secret and (hidden or not each.is_hidden)]
        if shown:
            lines += ["", f"{title}:", ""]
        for option in shown:
            value = {"flag": "", "value": f"=<{option.value}>", "optional": f"[=<{option.value}>]"}[option.kind]
            alias = f" (-{option.alias})" if option.alias else ""
            lines.append(f"  --{option.name}{value}{alias}".ljust(_WIDTH) + f" - {option.description}")
    return "\n".join([*lines, ""])
