"""An extension of griffe: references in docstrings become links, as Sphinx would show them.

Docstrings refer to what is public with ``:func:`serialize```; Markdown knows no such roles.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

__all__ = ["PublicNames", "linked"]

_ROLE: Final = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?(?P<name>[\w.]+)`")


def linked(text: str, public: frozenset[str]) -> str:
    """Return a docstring with its references as links to what is public, and as code where they name something else."""

    def link(found: re.Match[str]) -> str:
        name = found["name"].removeprefix("vhlo_tools.")
        shown = f"`{name}`"
        return f"[{shown}][vhlo_tools.{name}]" if name in public else shown

    return _ROLE.sub(link, text)


class PublicNames(griffe.Extension):  # type: ignore[misc]
    """Links references in all docstrings."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go over all that a package has."""
        exported = pkg.exports or ()
        self._walk(pkg, frozenset(map(str, exported)))

    def _walk(self, scope: griffe.Object, public: frozenset[str]) -> None:
        if scope.docstring is not None:
            scope.docstring.value = linked(scope.docstring.value, public)
        for member in scope.members.values():
            if not member.is_alias and isinstance(member, griffe.Object):
                self._walk(member, public)
