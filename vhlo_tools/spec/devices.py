"""Devices for which plugins compile without having them, from ``dialect_specs/tpus.toml`` and ``gpus.toml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from vhlo_tools.errors import UnknownTargetError
from vhlo_tools.records import dataclass
from vhlo_tools.spec.data import NUMBERED, check_entry, load_entries

if TYPE_CHECKING:
    from vhlo_tools.spec.data import Kind

#: What kinds of devices plugins compile for.
DeviceKind = Literal["tpu", "gpu"]

_TOPOLOGY: Final = re.compile(r"[1-9][0-9]{0,3}(x[1-9][0-9]{0,3}){1,2}")
#: More than any pod or cluster that plugins describe has; a program may say any number.
_MOST_DEVICES: Final = 1 << 13
#: What all GPUs have in common.
_COMMON: Final[Mapping[str, int]] = MappingProxyType(
    {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 49152,
        "block_dim_limit_x": 2147483647,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
    }
)
_NUMBERS: Final = (
    *("core_count", "fpus_per_core", "shared_memory_per_core", "shared_memory_per_block_optin"),
    *("threads_per_core_limit", "memory_bandwidth", "l2_cache_size", "device_memory_size"),
)


@dataclass(frozen=True, slots=True)
class Topology:
    """Devices for a plugin's compiler: a name that it knows, and options."""

    name: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Tpu:
    name: str
    dimensions: int
    devices_per_chip: int

    def topology(self, layout: str | None, devices: int) -> Topology:
        sizes = [2, 2, 1][: self.dimensions]
        while layout is None and prod(sizes) * self.devices_per_chip < devices:
            sizes[min(range(self.dimensions), key=lambda at: (sizes[at], -at))] *= 2
        return Topology(f"{self.name}:{layout or 'x'.join(map(str, sizes))}", {})


@dataclass(frozen=True, slots=True)
class _Gpu:
    name: str
    capability: str
    numbers: Mapping[str, float]
    dimensions: int = 3

    def topology(self, layout: str | None, devices: int) -> Topology:
        # Of slices, of the hosts of a slice, and of the GPUs of a host.
        name = layout or f"1x1x{devices}"
        major, minor = self.capability.split(".")
        numbers = " ".join(f"{key}: {value}" for key, value in {**_COMMON, **self.numbers}.items())
        capability = f"cuda_compute_capability {{ major: {major} minor: {minor} }}"
        # The version of cuDNN for which kernels are chosen; old plugins want one.
        others = 'platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 patch: 0 }'
        config = f"gpu_device_info {{ {numbers} {capability} }} {others}"
        return Topology(name, {"target_config": config, "topology": name})


def topology_of(kind: DeviceKind, device: str, devices: int = 1) -> Topology:
    """Describe a device, such as ``v5e``, ``v5e:2x4`` or ``h100``, or as many as a program needs.

    Raises:
        UnknownTargetError: If there is none of that name, its topology has another form, or it is too many devices.
    """
    if devices > _MOST_DEVICES:
        raise UnknownTargetError(f"{devices} devices are too many for a topology: the limit is {_MOST_DEVICES}")
    name, _, layout = device.partition(":")
    known = _known(kind)
    if name not in known:
        raise UnknownTargetError(f"{device!r} is no {kind.upper()}: expected {', '.join(known)}")
    if layout and (_TOPOLOGY.fullmatch(layout) is None or layout.count("x") + 1 != known[name].dimensions):
        example = "x".join("1" * known[name].dimensions)
        raise UnknownTargetError(f"{device!r} is no topology: expected {name}, or one such as {name}:{example}")
    return known[name].topology(layout or None, devices)


@cache
def _known(kind: DeviceKind) -> Mapping[str, _Tpu | _Gpu]:
    to_device: Callable[[dict[str, Any]], _Tpu | _Gpu] = _to_tpu if kind == "tpu" else _to_gpu
    found = load_entries(f"{kind}s.toml", kind, to_device)
    return {each.name: each for each in found}


def _to_tpu(entry: dict[str, Any]) -> _Tpu:
    check_entry(entry, name=str, dimensions=range(2, 4), devices_per_chip=NUMBERED)
    return _Tpu(**entry)


def _to_gpu(entry: dict[str, Any]) -> _Gpu:
    words: dict[str, Kind] = dict.fromkeys(("name", "title", "source", "capability"), str)
    check_entry(entry, **words, **dict.fromkeys(_NUMBERS, int), clock_rate_ghz=float)
    return _Gpu(entry["name"], entry["capability"], {key: entry[key] for key in (*_NUMBERS, "clock_rate_ghz")})
