"""The shapes of MLIR's objects, as far as the toolkit uses them.

The bindings ship no types that hold across providers; these protocols say what all of them have in common.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Attribute", "Context", "Module", "Operation"]


class Context(Protocol):
    """An MLIR context."""

    @property
    def dialects(self) -> Any: ...
    def append_dialect_registry(self, registry: Any) -> None: ...
    def attach_diagnostic_handler(self, callback: Any) -> Any: ...
    def load_all_available_dialects(self) -> None: ...


class Attribute(Protocol):
    """An MLIR attribute."""

    @property
    def type(self) -> Any: ...


class Operation(Protocol):
    """An MLIR operation, or a view of one."""

    @property
    def attributes(self) -> Any: ...
    @property
    def context(self) -> Context: ...
    @property
    def location(self) -> Any: ...
    @property
    def name(self) -> Any: ...
    @property
    def operation(self) -> Any: ...
    @property
    def operands(self) -> Any: ...
    @property
    def regions(self) -> Any: ...
    @property
    def results(self) -> Any: ...


class Module(Protocol):
    """An MLIR module."""

    @property
    def body(self) -> Any: ...
    @property
    def context(self) -> Context: ...
    @property
    def operation(self) -> Any: ...
