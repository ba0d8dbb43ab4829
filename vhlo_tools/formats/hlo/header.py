"""Header of an HLO module: the common part of its text and its protocol buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.aliasing import Alias, Donor, Signature


@dataclass(frozen=True, slots=True)
class HloHeader:
    """The header of an HLO module."""

    name: str
    aliases: tuple[Alias, ...]
    donors: tuple[Donor, ...]  # donated inputs that are not bound to an output
    signature: Signature | None  # None if the module does not contain the shapes
