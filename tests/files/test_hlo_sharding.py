"""Shardings in words, against those of XLA."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from jax._src.lib import xla_client

from vhlo_tools.files.hlo import hlo_sharding_text

XLA: Any = xla_client.HloSharding
KIND: Any = xla_client.OpSharding.Type


def listed(dims: list[int], devices: list[int]) -> Any:
    proto = xla_client.OpSharding()
    proto.type = KIND.OTHER
    proto.tile_assignment_dimensions, proto.tile_assignment_devices = dims, devices
    return XLA.from_proto(proto)


def on_one(device: int) -> Any:
    proto = xla_client.OpSharding()
    proto.type = KIND.MAXIMAL
    proto.tile_assignment_dimensions, proto.tile_assignment_devices = [1], [device]
    return XLA.from_proto(proto)


SHARDINGS = [
    XLA.replicate(),
    XLA.manual(),
    XLA.unknown(),
    on_one(300),
    listed([2, 1], [1, 0]),
    XLA.iota_tile((2, 1)),
    XLA.iota_tile((2, 2), (2, 2), (1, 0)),
    XLA.iota_tile((2, 1, 2), (4,), (0,), [KIND.REPLICATED]),
    XLA.iota_tile((2, 1, 2, 2), (8,), (0,), [KIND.MANUAL, KIND.REPLICATED]),
    XLA.iota_tile((16, 16), (256,), (0,)),
]


@pytest.mark.parametrize("sharding", SHARDINGS, ids=str)
def test_as_xla_prints_it(sharding: Any) -> None:
    assert hlo_sharding_text(memoryview(sharding.to_proto().SerializeToString())) == str(sharding)


def test_many_devices_are_not_all_named() -> None:
    text = hlo_sharding_text(memoryview(listed([100], list(reversed(range(100)))).to_proto().SerializeToString()))
    assert text.startswith("{devices=[100]99,98,")
    assert text.endswith(",36,...}")


@given(st.binary(max_size=40))
def test_any_bytes_have_a_text(data: bytes) -> None:
    text = hlo_sharding_text(memoryview(data))
    assert text.startswith("{") or text == f"an HLO sharding of {len(data)} bytes"


@pytest.mark.parametrize("data", [b"\x08", b"\x08" + b"\xff" * 11, b"\x1a\x05\x01", b"\x0b", b"\x08\x03", b"\x08\x02"])
def test_what_xla_would_not_read(data: bytes) -> None:
    assert hlo_sharding_text(memoryview(data)) == f"an HLO sharding of {len(data)} bytes"
