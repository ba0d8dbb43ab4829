"""Arguments as LLVM's programs read them, by a table of options.

Source: ``llvm/lib/Support/CommandLine.cpp`` in llvm/llvm-project: one dash or two, a value after ``=`` or, where an
option must have one, as the next argument; ``--`` ends the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["Arguments", "Option", "UsageError", "help_text", "parse_arguments", "truth_of"]

#: ``flag``: on or off, on by itself. ``value``: needs one. ``optional``: has one only after ``=``.
Kind = Literal["flag", "value", "optional"]

_TRUTHS: Final = {"true": True, "TRUE": True, "True": True, "1": True, "": True}
_FALSEHOODS: Final = {"false": False, "FALSE": False, "False": False, "0": False}
_UINT: Final = 1 << 32
_DIGITS: Final = 20
_WIDTH: Final = 52


class UsageError(Exception):
    """Arguments with which the program can do nothing; the message says which, and what it takes."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a program.

    Attributes:
        name: Its name, without dashes.
        description: What it does.
        kind: Whether it has a value.
        value: What to call its value.
        choices: The values that it takes, if not any.
        is_number: Whether its value is a number of 32 bits that is not negative.
        is_hidden: Whether only ``--help-hidden`` lists it.
        is_secret: Whether nothing lists it.
        alias: Another name for it.
    """

    name: str
    description: str = ""
    kind: Kind = "flag"
    value: str = "string"
    choices: tuple[str, ...] = ()
    is_number: bool = False
    is_hidden: bool = False
    is_secret: bool = False
    alias: str = ""


@dataclass(slots=True)
class Arguments:
    """Arguments as they were read.

    Attributes:
        values: The value of each option that was given, the last one if it was given more than once.
        others: Options that the table does not have, in order, each with its value.
        files: What is no option.
    """

    values: dict[str, str] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether a flag is on."""
        return default if name not in self.values else truth_of(self.values[name]) is True

    def number(self, name: str) -> int | None:
        """Return the number that an option was given."""
        return int(self.values[name]) if name in self.values else None

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return what an option was given."""
        return self.values.get(name, default)


def parse_arguments(
    arguments: Sequence[str],
    sections: Mapping[str, Iterable[Option]],
    takes: Callable[[str], bool] = lambda name: False,
    known: Callable[[], Iterable[str]] = tuple,
) -> Arguments:
    """Read arguments.

    Args:
        arguments: The arguments, without the name of the program.
        sections: The options of the program, by what they are about.
        takes: Tells which names the program takes beside, as a flag or with a value after ``=``.
        known: Gives names beside those of the options, to suggest where one is mistyped.

    Raises:
        UsageError: If there is an option that the program does not take, or a value that the option does not take.
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
                    value = _next(rest, option)
                read.values[option.name] = _checked(option, value)
            elif takes(name):
                read.others.append((name, value))
            else:
                raise UsageError(_unknown(argument, name, [*table, *known()], table))
    return read


def _next(rest: Iterable[str], option: Option) -> str:
    for value in rest:
        return value
    raise UsageError(f"for the --{option.name} option: requires a value!")


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
    """Return what the value of a flag says; ``None`` if it is none."""
    return _TRUTHS.get(value, _FALSEHOODS.get(value))


def _unknown(argument: str, name: str, known: Sequence[str], table: Mapping[str, Option]) -> str:
    # Not at the top: it is seldom needed, and each start would wait for it.
    import difflib

    listed = [each for each in known if each not in table or not table[each].is_secret]
    near = difflib.get_close_matches(name, listed, 1)
    guess = f"  Did you mean '--{near[0]}'?" if near else ""
    return f"Unknown command line argument '{argument}'.{guess}  Try '--help'."


def help_text(overview: str, usage: str, sections: Mapping[str, Iterable[Option]], hidden: bool) -> str:
    """Return what ``--help`` prints.

    Args:
        overview: What the program is.
        usage: How it is called.
        sections: Its options, by what they are about.
        hidden: Whether to list those too that are seldom needed.
    """
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
