"""What is made when it is first used: names that a package exports, and regular expressions.

Every room has its names by it in its ``__init__``, so that importing one does not load the whole room: ``vhlo inspect``
does not import the modules that compare programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, AnyStr, cast

from vhlo_tools.exports import EXPORTS


class LazyPattern:
    """A regular expression that is compiled when it is first used: many are not, and each takes as long as a module."""

    def __init__(self, text: str | bytes, flags: int = 0) -> None:
        self._given: tuple[Any, int] = (text, flags)

    def __getattr__(self, name: str) -> Any:
        # Called once for a name: then the object has it.
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile`` gives, made when it is first used."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package (PEP 562), which is given by its ``__name__``."""
    module_of: dict[str, str] = {}

    def modules() -> dict[str, str]:
        if not module_of:
            module_of.update((name, module) for module, names in EXPORTS[package].items() for name in names.split())
        return module_of

    def load(name: str) -> Any:
        if (module := modules().get(name)) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        # Later uses find the name in the package itself, which is imported, not looked up in `sys.modules[package]`.
        vars(import_module(package))[name] = value
        return value

    return load, lambda: sorted(modules())
