"""An extension of griffe: what docstrings have of reStructuredText becomes Markdown.

Docstrings refer to what is public with ``:func:`serialize```, which becomes a link, and show sessions of Python that
begin with ``>>>``, which become blocks of code.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

__all__ = ["AsMarkdown", "fenced", "linked"]

_ROLE: Final = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?(?P<name>[\w.]+)`")
_SESSION: Final = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


def linked(text: str, public: frozenset[str]) -> str:
    """Return a docstring with its references as links to what is public, and as code where they name something else."""

    def link(found: re.Match[str]) -> str:
        name = found["name"].removeprefix("vhlo_tools.")
        shown = f"`{name}`"
        return f"[{shown}][vhlo_tools.{name}]" if name in public else shown

    return _ROLE.sub(link, text)


def fenced(text: str) -> str:
    """Return a docstring with its sessions as blocks of code."""
    return _SESSION.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


class AsMarkdown(griffe.Extension):  # type: ignore[misc]
    """Goes over the docstrings of a package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the docstrings of all that a package has."""
        self._rewrite(pkg, frozenset(map(str, pkg.exports or ())))

    def _rewrite(self, scope: griffe.Object, public: frozenset[str]) -> None:
        if scope.docstring is not None:
            scope.docstring.value = fenced(linked(scope.docstring.value, public))
        for member in scope.members.values():
            if not member.is_alias and isinstance(member, griffe.Object):
                self._rewrite(member, public)
