"""What a whole program says of aliases: its entry function, by the names of the user's source, and its custom calls."""

from __future__ import annotations

from dataclasses import dataclass

from vhlo_tools.aliasing.config import Alias, AliasConfig
from vhlo_tools.aliasing.declared import Declared
from vhlo_tools.aliasing.shapes import Signature
from vhlo_tools.findings import SourceLocation

__all__ = ["CallAliases", "NamedValue", "ProgramAliases"]


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A parameter or a result.

    Attributes:
        name: What it is called in the user's source, if that was recorded.
        location: Where it stands there.
    """

    name: str | None = None
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class CallAliases:
    """The aliases of a custom call: which of its results are written over which of its operands.

    Attributes:
        path: Where it stands in the program, as findings spell it.
        target: What it calls.
        signature: The shapes of its operands and results.
        aliases: What it says; all of them must be.
        location: Where it stands in the user's source.
    """

    path: str
    target: str
    signature: Signature
    aliases: tuple[Alias, ...]
    location: SourceLocation | None = None

    def config(self) -> AliasConfig:
        """Return its aliases.

        Raises:
            AliasError: If they break a rule.
        """
        return AliasConfig(self.signature, self.aliases)


@dataclass(frozen=True, slots=True)
class ProgramAliases:
    """What a program says of aliases and donors.

    Attributes:
        function: The name of its entry function; ``None`` if it has none.
        declared: What is said of that function.
        parameters: Its parameters.
        results: Its results.
        calls: The custom calls that have aliases of their own.
    """

    function: str | None
    declared: Declared
    parameters: tuple[NamedValue, ...] = ()
    results: tuple[NamedValue, ...] = ()
    calls: tuple[CallAliases, ...] = ()
