"""The header of an HLO module: what its text and its protocol buffer have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, Donor, Signature


@dataclass(frozen=True, slots=True)
class HloHeader:
    """The header of an HLO module.

    Attributes:
        name: The name of the module.
        aliases: The outputs that may, or must, be written over inputs.
        donors: The donated inputs that are not bound to an output.
        signature: The shapes of the parameters and of the result; ``None`` if the module does not contain them.
    """

    name: str
    aliases: tuple[Alias, ...]
    donors: tuple[Donor, ...]
    signature: Signature | None
