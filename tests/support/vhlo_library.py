"""What the installed library makes of VHLO text, and the names that its binary holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from support.corpus import writable_versions
from support.vhlo_text import OpText
from vhlo_tools.bindings import MLIRFailure, Provider, get_provider
from vhlo_tools.spec import known_ops
from vhlo_tools.spec_tools.probing import names_in
from vhlo_tools.version import Version

CURRENT = get_provider().library.current
VERSIONS = writable_versions()
OP_VERSIONS = [
    (op, version) for op in known_ops() for version in op.versions if version.min <= CURRENT and not version.forgotten
]


class Vhlo:
    """A context of the library, and what it makes of VHLO text."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.context: Any = provider.new_context()

    def generic(self, text: OpText | str) -> str:
        """Return `text` as the library prints it; it must parse."""
        return self.provider.text(self.provider.parse(self.context, str(text)), generic=True)

    def refuses(self, text: OpText) -> str | None:
        """Return why `text` does not parse, `None` if it does."""
        try:
            self.provider.parse(self.context, str(text))
        except MLIRFailure as failure:
            return str(failure)
        return None

    def at(self, text: OpText, version: Version) -> str | None:
        """Return `text` converted to `version`, `None` if the library refuses that."""
        module = self.provider.parse(self.context, str(text))
        try:
            self.provider.run_passes(module, f"vhlo-to-version{{target={version}}}", verify=True)
        except MLIRFailure:
            return None
        return self.provider.text(module, generic=True)

    def is_type(self, text: str) -> bool:
        try:
            self.provider.ir.Type.parse(text, self.context)
        except self.provider.ir.MLIRError:
            return False
        return True

    def bytecode(self, text: OpText | str) -> bytes:
        return b"".join(self.provider.bytecode(self.provider.parse(self.context, str(text)), CURRENT))


@cache
def names_in_binary() -> frozenset[str]:
    """Return every name after ``vhlo.`` in the shared objects of the library: ops, types and attributes among them."""
    package = Path(get_provider().module("ir").__file__).parents[1]
    return names_in(package)
