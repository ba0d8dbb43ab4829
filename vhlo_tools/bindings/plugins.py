"""Plugins of PJRT that have a device here: each in a process of its own, which compiles and runs programs.

A plugin is code, which the user has named, and drives a device as no filter of system calls could list. Its process
may do what the caller may, and its death is an error and nothing more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any, Final

from vhlo_tools.bindings import isolation
from vhlo_tools.bindings.foreign import ArrayType, ForeignProgram
from vhlo_tools.bindings.isolation.limits import note, settle_after_call
from vhlo_tools.errors import EngineError

#: What talks to a plugin, by ctypes alone.
_TALKING: Final = Path(__file__).parents[1] / "releases" / "inside" / "pjrt.py"
#: The number of programs that a child keeps.
_LOADED: Final = 16

_loaded: OrderedDict[bytes, int] = OrderedDict()


@cache
def _device(library: str) -> tuple[Any, type[Exception]]:
    talking = run_path(str(_TALKING))
    refusal: type[Exception] = talking["PluginError"]
    note(f"start of {library}")
    # The libraries of a device stay.
    settle_after_call()
    try:
        return talking["Device"](talking["Plugin"](Path(library), has_device=True)), refusal
    except OSError as error:
        raise EngineError(f"the plugin cannot be loaded: {error}") from error
    except refusal as error:
        raise EngineError(f"{library}: the plugin runs nothing here: {error}") from error


def run_here(
    key: bytes, artifact: memoryview | None, name: str, inputs: list[Any] | None, results: list[ArrayType], library: str
) -> list[Any] | str:
    """Called in a child process."""
    import numpy as np

    device, refusal = _device(library)
    if key not in _loaded:
        if artifact is None:
            return isolation.MISSING
        note(f"compilation of {name}")
        try:
            _loaded[key] = device.compile(bytes(artifact))
        except refusal as error:
            raise EngineError(f"the plugin cannot compile {name}: {error}") from error
    _loaded.move_to_end(key)
    if len(_loaded) > _LOADED:
        device.forget(_loaded.popitem(last=False)[1])
    if inputs is None:
        return []
    note(f"execution of {name}")
    try:
        found: list[Any] = device.run(_loaded[key], [np.ascontiguousarray(each).reshape(each.shape) for each in inputs])
    except refusal as error:
        raise EngineError(f"the plugin cannot run {name}: {error}") from error
    return found


class _OneChild(isolation.Pool):
    """A device is for one process at a time: many plugins take most of its memory at their start."""

    def __init__(self) -> None:
        super().__init__(("numpy",), most=1, free=True)
        self._only = threading.Lock()

    def call(self, function: str, arguments: tuple[object, ...], limits: isolation.Limits) -> Any:
        with self._only:
            return super().call(function, arguments, limits)

    def forget(self) -> None:
        super().forget()
        self._only = threading.Lock()


_child_of: Final = cache(lambda library: _OneChild())


def load_with_plugin(library: Path, name: str, artifact: bytes, results: Sequence[ArrayType]) -> ForeignProgram:
    """``artifact`` is a portable artifact that the plugin reads, and has static shapes; ``name`` is for messages."""
    where = str(library)
    return ForeignProgram(f"{__name__}:run_here", name, artifact, results, where, pool=_child_of(where))
