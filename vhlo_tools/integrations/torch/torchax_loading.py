"""Load torchax beside a torch that it was not released for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from vhlo_tools.errors import ProviderError

#: The versions that were tried.
_FITTING: Final = "torchax 0.0.13 fits torch 2.12.0 and 2.13.0 with jax 0.10.2"
_TELEMETRY: Final = "ENABLE_RUNTIME_UPTIME_TELEMETRY"


def torchax_is_installed() -> bool:
    """Neither package is imported."""
    return all(find_spec(package) is not None for package in ("torchax", "jax"))


def load_torchax() -> ModuleType:
    """Return torchax's filled table of ops; an error names the versions of torch and jax that fit."""
    failed = _load()
    if failed is not None:
        raise ProviderError(f"{_versions()} cannot be imported: {failed}; {_FITTING}")
    from torchax.ops import ops_registry

    registry: ModuleType = ops_registry
    return registry


@cache
def _load() -> str | None:
    """Import torchax, and return the reason if that fails. A failed import is not tried again: it leaves halves."""
    try:
        with _torch_unchanged(), _removed_overloads():
            import torchax.decompositions
            import torchax.ops.jaten  # noqa: F401 - fills the table of ops
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


@contextmanager
def _removed_overloads() -> Iterator[None]:
    """Let torchax name overloads that torch no longer has.

    torchax 0.0.13 lists overloads with names of dimensions, which torch 2.13 has removed, as keys of tables: of casts
    under autocast, and of ops to decompose. An object that equals no overload does as well there.
    """
    from torch._ops import OpOverloadPacket

    own = OpOverloadPacket.__getattr__

    def overload(packet: Any, name: str) -> Any:
        try:
            return own(packet, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return object()

    OpOverloadPacket.__getattr__ = overload
    try:
        yield
    finally:
        OpOverloadPacket.__getattr__ = own


@contextmanager
def _torch_unchanged() -> Iterator[None]:
    """Undo or prevent the changes outside of torchax by its import: settings of torch and jax, and decompositions.

    torchax makes JAX a device of torch, which the conversion does not need, and with which torch.export of control flow
    fails.
    """
    import jax
    import torch
    from torch._decomp import global_decomposition_table

    fast, telemetry = torch.backends.mha.get_fastpath_enabled(), os.environ.get(_TELEMETRY)
    client = getattr(jax.config, "jax_pjrt_client_create_options", None)
    tables = {name: dict(table) for name, table in global_decomposition_table.items()}
    rename, register = torch.utils.rename_privateuse1_backend, torch._register_device_module
    torch.utils.rename_privateuse1_backend = torch._register_device_module = lambda *_: None
    try:
        yield
    finally:
        torch.utils.rename_privateuse1_backend, torch._register_device_module = rename, register
        torch.backends.mha.set_fastpath_enabled(fast)
        if telemetry is None:
            os.environ.pop(_TELEMETRY, None)
        if client:
            jax.config.update("jax_pjrt_client_create_options", client)
        for name, table in tables.items():
            global_decomposition_table[name].clear()
            global_decomposition_table[name].update(table)


def _versions() -> str:
    return f"torchax {_version('torchax')} beside torch {_version('torch')} and jax {_version('jax')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(unknown)"
