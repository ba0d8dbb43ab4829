"""Protocols for the MLIR objects that the toolkit uses.

The bindings ship no types that are valid across providers; these protocols describe their common interface.
"""

from __future__ import annotations

from typing import Any, Protocol


class Context(Protocol):
    """An MLIR context."""

    allow_unregistered_dialects: bool
    emit_error_diagnostics: bool

    def __enter__(self) -> Any: ...
    def __exit__(self, *raised: Any) -> None: ...
    def append_dialect_registry(self, registry: Any) -> None: ...
    def is_registered_operation(self, name: str) -> bool: ...
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
    @location.setter
    def location(self, location: Any) -> None: ...
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


class ModuleOp(Protocol):
    """A ``builtin.module``: a parsed module, or only its op, as returned by cloning."""

    @property
    def context(self) -> Context: ...
    @property
    def operation(self) -> Any: ...


class Module(ModuleOp, Protocol):
    """A parsed MLIR module, which some functions of the library require."""

    @property
    def body(self) -> Any: ...
