"""Aliases of a whole program: its entry function, with the names in the user's source, and its custom calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.aliasing.config import AliasConfig
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing.alias_entries import Alias
    from vhlo_tools.aliasing.declared import Declared
    from vhlo_tools.aliasing.shapes import Signature
    from vhlo_tools.findings import SourceLocation


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A parameter or a result.

    Attributes:
        name: Its name in the user's source, if it was recorded.
        location: Its location there.
    """

    name: str | None = None
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class CallAliases:
    """The aliases of a custom call: the results that are written over operands.

    Attributes:
        path: Its path in the program, as in findings.
        target: The target of the call.
        signature: The shapes of its operands and results.
        aliases: Its aliases, all of kind ``must-alias``.
        location: Its location in the user's source.
    """

    path: str
    target: str
    signature: Signature
    aliases: tuple[Alias, ...]
    location: SourceLocation | None = None

    def config(self) -> AliasConfig:
        """Return its aliases.

        Raises:
            AliasError: If they violate a rule.
        """
        return AliasConfig(self.signature, self.aliases)


@dataclass(frozen=True, slots=True)
class ProgramAliases:
    """The aliases and donors declared in a program.

    Attributes:
        function: The name of its entry function; ``None`` if it has none.
        declared: The declarations of that function.
        parameters: Its parameters.
        results: Its results.
        calls: The custom calls with aliases of their own.
    """

    function: str | None
    declared: Declared
    parameters: tuple[NamedValue, ...] = ()
    results: tuple[NamedValue, ...] = ()
    calls: tuple[CallAliases, ...] = ()
