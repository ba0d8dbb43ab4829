"""Resolution of targets by names from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from vhlo_tools import api
from vhlo_tools.compat import PLUGIN, Library, Target, resolve_target as resolve
from vhlo_tools.errors import InvalidVersionError, UnknownTargetError
from vhlo_tools.spec import minimum_version, newest_version

Names = Mapping[str, tuple[str, ...]]


def resolve_named(spelling: str, names: Names, *, as_of: date | None = None, provider: str | None = None) -> Target:
    """Return the target for a text in the target grammar, which may contain names of ``names``."""
    plain = _without_names(spelling, names)
    try:
        target = api.resolve_target(plain, as_of=as_of, provider=provider)
    except UnknownTargetError as error:
        raise UnknownTargetError(f"{error}{_hint(spelling, names)}") from error
    return target if plain == spelling else replace(target, spelling=spelling, exact=False)


def check_target(spelling: str, names: Names, as_of: date | None) -> str | None:
    """Return the error in a target of a file, if any; needs no bindings."""
    if any(each.strip().startswith(PLUGIN) for each in spelling.split(",")):
        return f"{spelling!r} names a plugin, which is code that no file may run: give it with --target"
    try:
        resolve(_without_names(spelling, names), _no_library, as_of=as_of)
    except (UnknownTargetError, InvalidVersionError) as error:
        return f"{error}{_hint(spelling, names)}"
    return None


def _without_names(spelling: str, names: Names) -> str:
    members = [member.strip() for member in spelling.split(",")]
    if not set(members) & names.keys():
        return spelling
    return ",".join(each for member in members for each in names.get(member, (member,)))


def _hint(spelling: str, names: Names) -> str:
    unknown = [member.strip() for member in spelling.split(",")]
    # Imported here because few names are misspelt.
    from difflib import get_close_matches

    near = [each for member in unknown for each in get_close_matches(member, names, n=1) if each != member]
    if near:
        return f"; did you mean {' and '.join(near)}?"
    return f"; the settings name {', '.join(names)}" if names else ""


def _no_library() -> Library:
    """Return a placeholder for the installed library, for checking only the spelling of targets."""
    newest = newest_version()
    return Library(
        "any library", newest, minimum_version(), dict.fromkeys(("NONE", "WEEK_4", "WEEK_12", "MAX"), newest)
    )
