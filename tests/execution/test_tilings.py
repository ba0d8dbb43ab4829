"""Values cut into parts for devices, as shardings of Shardy and of GSPMD say, and put together again."""

from __future__ import annotations

import numpy as np
import pytest

from vhlo_tools.execution.devices import Tiling, gspmd_tiling, shardy_tilings
from vhlo_tools.program import groups_along

MESH = '#sdy.mesh<["a"=2, "b"=4]>'
WHOLE = np.arange(64).reshape(8, 8)


def rows_and_columns(tiling: Tiling, devices: int) -> list[tuple[int, int]]:
    """Return where the part of each device begins, after it was seen that the parts make the whole again."""
    parts = [part for device in range(devices) if (part := tiling.part(WHOLE, device)) is not None]
    assert len(parts) == devices
    for group in tiling.groups:
        np.testing.assert_array_equal(tiling.joined([parts[device] for device in group]), WHOLE)
    return [divmod(int(part.flat[0]), 8) for part in parts]


def shardy(dimensions: str, *manual: str) -> Tiling:
    (tiling,) = shardy_tilings(f"#sdy.sharding_per_value<[<@mesh, [{dimensions}]>]>", manual, {"mesh": MESH}.get) or []
    return tiling


def test_axes_of_a_mesh() -> None:
    assert rows_and_columns(shardy('{"a"}, {"b"}', "a", "b"), 8) == [(4 * a, 2 * b) for a in (0, 1) for b in range(4)]
    assert rows_and_columns(shardy('{"b", "a"}, {}', "a", "b"), 8) == [(2 * b + a, 0) for a in (0, 1) for b in range(4)]


def test_axes_that_are_not_manual_cut_nothing() -> None:
    assert rows_and_columns(shardy('{"a", "b"}, {}', "a"), 8) == [(4 * a, 0) for a in (0, 1) for _ in range(4)]
    assert rows_and_columns(shardy("{}, {?}", "a", "b"), 8) == [(0, 0)] * 8


def test_parts_of_an_axis() -> None:
    assert rows_and_columns(shardy('{"b":(1)2}, {}', "b"), 8) == [(4 * (b // 2), 0) for _ in (0, 1) for b in range(4)]
    assert rows_and_columns(shardy('{}, {"b":(2)2}', "b"), 8) == [(0, 4 * (b % 2)) for _ in (0, 1) for b in range(4)]


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        ("{devices=[2,4]<=[8]}", [(4 * a, 2 * b) for a in (0, 1) for b in range(4)]),
        ("{devices=[4,2]<=[2,4]T(1,0)}", [(2 * b, 4 * a) for a in (0, 1) for b in range(4)]),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", [(4 * a, 0) for a in (0, 1) for _ in range(4)]),
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual}}", [(0, 2 * b) for _ in (0, 1) for b in range(4)]),
        ("{devices=[8,1]7,6,5,4,3,2,1,0}", [(row, 0) for row in range(7, -1, -1)]),
    ],
)
def test_shardings_of_gspmd(sharding: str, expected: list[tuple[int, int]]) -> None:
    tiling = gspmd_tiling(sharding, 2)
    assert tiling is not None
    assert rows_and_columns(tiling, 8) == expected


def test_what_cuts_nothing_or_does_not_fit_is_told() -> None:
    assert gspmd_tiling("{manual}", 2) is None
    assert gspmd_tiling("{devices=[2,4]<=[8]}", 3) is None
    assert shardy_tilings("#sdy.sharding_per_value<[<@other, [{}]>]>", ["a"], {"mesh": MESH}.get) is None
    assert shardy('{"a"}, {"b"}', "a", "b").part(np.zeros((8, 7)), 0) is None
    assert shardy('{"a"}, {"b"}', "a", "b").part(WHOLE, 8) is None


@pytest.mark.parametrize(
    ("mesh", "axes", "said"),
    [
        ('<["x"=0]>', [("x", "", "")], "0 devices"),
        ('<["x"=4000000000000]>', [("x", "", "")], "4000000000000 devices, expected 1 to"),
        ('<["x"=4]>', [("y", "", "")], "no axis 'y'"),
        ('<["x"=4]>', [("x", "0", "2")], "no axis 'x' with a part of size 2 after one of 0"),
        ('<["x"=4]>', [("x", "2", "3")], "no axis 'x' with a part of size 3"),
        ('<["x"=4], device_ids=[0, 1]>', [("x", "", "")], "2 device ids, expected 4"),
    ],
)
def test_a_mesh_without_such_axes_is_refused(mesh: str, axes: list[tuple[str, str, str]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        groups_along(mesh, axes)
    of_nothing = {"mesh": '#sdy.mesh<["x"=0]>'}.get
    assert shardy_tilings('#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>', ["x"], of_nothing) is None
