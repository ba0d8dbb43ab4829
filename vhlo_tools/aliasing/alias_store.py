"""Reading and writing of a program's aliases in any store of its attributes: bytes, or an MLIR module."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from vhlo_tools.aliasing.alias_attributes import MODULE_ATTRIBUTES, encode_aliases, fits, read_declared
from vhlo_tools.errors import AliasError

if TYPE_CHECKING:
    from vhlo_tools.aliasing.attribute_values import Plain
    from vhlo_tools.aliasing.config import AliasConfig
    from vhlo_tools.aliasing.declared import Declared, Form
    from vhlo_tools.aliasing.shapes import Signature


def entry_name(names: Collection[str]) -> str | None:
    """Return the name of the function that XLA enters: ``main``, or the only one."""
    return "main" if "main" in names else next(iter(names)) if len(names) == 1 else None


class AliasStore(Protocol):
    """Alias attributes, as plain values, of the entry function of a program and its module."""

    @property
    def name(self) -> str:
        """Name of the function."""

    @property
    def signature(self) -> Signature:
        """Signature in XLA shapes."""

    def argument_aliases(self) -> Sequence[Mapping[str, Plain]]:
        """Return the alias attributes of each argument."""

    def module_aliases(self) -> Mapping[str, Plain]:
        """Return the alias attributes of the module."""

    def set_argument_aliases(self, arguments: Sequence[Mapping[str, Plain]]) -> None:
        """Replace the alias attributes of each argument."""

    def set_module_aliases(self, gone: Sequence[str], added: Mapping[str, Plain]) -> None:
        """Remove the attributes ``gone`` from the module, and add others."""


def declared_in(store: AliasStore) -> Declared:
    """Return declared aliases and donors, valid or not."""
    return read_declared(store.signature, store.argument_aliases(), store.module_aliases())


def set_aliases(store: AliasStore | None, config: AliasConfig, form: Form | None = None) -> None:
    """``form`` is by default the present one, or else one that can express the aliases."""
    if store is None:
        if config:
            raise AliasError("the program has no function main, so it cannot have aliases")
        return
    if store.signature != config.signature:
        raise AliasError(
            f"the aliases are for the signature {_text(config.signature)}, but @{store.name} has the signature "
            f"{_text(store.signature)}"
        )
    held = declared_in(store).form
    encoded = encode_aliases(config, form or (held if held and fits(config, held) else None))
    store.set_argument_aliases(encoded.arguments)
    # An empty list, which a conversion from HLO leaves, declares nothing and may remain.
    said = {name: value for name, value in store.module_aliases().items() if name in MODULE_ATTRIBUTES}
    gone = [name for name, value in said.items() if name in encoded.module or value != []]
    if gone or encoded.module:
        store.set_module_aliases(gone, encoded.module)


def _text(signature: Signature) -> str:
    return f"({', '.join(map(str, signature.parameters))}) -> {signature.result}"
