"""Lazy imports of the names that a package exports.

Every package of the toolkit uses it in its ``__init__``, so that importing one name does not load the whole package:
``vhlo inspect`` does not import the modules that compare programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package (PEP 562), for names by module."""
    module_of = {name: module for module, given in names.items() for name in given}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        # Later uses find the name in the package itself, which is imported, not looked up in `sys.modules[package]`.
        vars(import_module(package))[name] = value
        return value

    return load, lambda: sorted(module_of)
