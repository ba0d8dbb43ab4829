"""Ops of every size, written and read again; most are read by a shortcut, and the rest without it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from vhlo_tools import MalformedArtifactError
from vhlo_tools.bytecode import Block, BlockArgument, Operation, Region, UseListOrder
from vhlo_tools.bytecode.ir import TableSizes, decode_ir, encode_ir
from vhlo_tools.bytecode.primitives import ByteReader

pytestmark = pytest.mark.every_python

TABLES = TableSizes(1 << 22, 1 << 22, 1 << 22, 1 << 22)
NEWEST = 6


def read(data: bytes, tables: TableSizes = TABLES, version: int = NEWEST) -> Block:
    return decode_ir(ByteReader(memoryview(data), section="ir"), version, tables)


#: Numbers of one to four bytes, by their bits; and lists as long as a shortcut takes, or longer, or of a length of two
#: bytes.
BITS, COUNTS = (7, 14, 21, 22), (0, 0, 1, 1, 1, 2, 3, 31, 32, 33, 127, 128, 129, 192)


def number(chance: random.Random, size: int, *, usual: bool) -> int:
    return min(chance.randrange(1 << chance.choice(BITS[:3] if usual else BITS)), size - 1)


def numbers(chance: random.Random, size: int, *, usual: bool) -> tuple[int, ...]:
    count = chance.choice(COUNTS[:9] if usual else COUNTS)
    return tuple(number(chance, size, usual=usual) for _ in range(count if size else 0))


def program(chance: random.Random, arguments: int, kinds: int, ops: int, *, usual: bool) -> Block:
    """Return a function with some block arguments, and ops of some kinds that use these and each other's results."""
    names = [chance.randrange(1 << chance.choice((4, 7) if usual else (7, 14))) for _ in range(max(1, kinds // 12))]
    made = [
        Operation(
            chance.choice(names),
            0,
            chance.choice((None, number(chance, TABLES.attributes, usual=usual))),
            chance.choice((None, number(chance, TABLES.properties, usual=usual))),
            numbers(chance, TABLES.types, usual=usual),
        )
        for _ in range(kinds)
    ]
    # The operands of a kind are always as many, for this too is what it is known by.
    counts = [chance.choice(COUNTS[:9] if usual else COUNTS) for _ in made]
    drawn = [chance.randrange(kinds) for _ in range(ops)]
    values = arguments + sum(len(made[kind].results) for kind in drawn)
    held = [BlockArgument(number(chance, 1 << 22, usual=False), chance.randrange(1 << 22)) for _ in range(arguments)]
    orders = [() if usual or chance.random() < 0.5 else (UseListOrder(None, False, (1, 0)),) for _ in made]
    body = [
        replace(
            made[kind],
            use_lists=orders[kind] if len(made[kind].results) == 1 else (),
            location=number(chance, TABLES.attributes, usual=usual),
            operands=tuple(number(chance, values, usual=usual) for _ in range(counts[kind] if values else 0)),
        )
        for kind in drawn
    ]
    return Block(operations=[Operation(0, 0, regions=[Region([Block(held, body)])], isolated=True)])


@pytest.mark.sample(6)
@pytest.mark.parametrize("usual", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_ops_come_back(seed: int, usual: bool) -> None:
    chance = random.Random(seed)
    kinds, arguments = chance.choice((1, 7, 30, 300)), chance.choice((0, 1, 200, 17000))
    block = program(chance, arguments, kinds, chance.choice((40, 400)), usual=usual)
    data = encode_ir(block, NEWEST)
    again = read(data)
    # From columns, and from objects.
    assert encode_ir(again, NEWEST) == data
    assert again == block
    assert encode_ir(again, NEWEST) == data


@pytest.mark.long
def test_more_ops_than_are_read_at_once() -> None:
    chance = random.Random(0)
    block = program(chance, 3, 20, 70_000, usual=True)
    data = encode_ir(block, NEWEST)
    again = read(data)
    assert encode_ir(again, NEWEST) == data
    assert again == block


def test_more_forms_than_are_remembered() -> None:
    """Of one name, with properties of their own; of more lengths than are looked for; too long to be read in bulk."""
    chance = random.Random(0)
    forms = [Operation(1, 5, properties=each, results=(7,)) for each in range(9_000)]
    forms += [Operation(1, 5, properties=1 << each % 20, results=(300,) * each) for each in range(40)]
    # Each of these often enough to be met again.
    forms += forms[9_000:] * 100
    body = [chance.choice(forms) for _ in range(20_000)]
    block = Block(operations=[Operation(0, 0, regions=[Region([Block(operations=body)])], isolated=True)])
    data = encode_ir(block, NEWEST)
    again = read(data)
    assert encode_ir(again, NEWEST) == data
    assert again == block


def test_no_byte_is_read_beyond_the_end() -> None:
    """The longest ops that are read in bulk, and the beginning of another where the bytes end."""
    op = Operation(1, 1 << 21, 1 << 21, 1 << 21, results=(1 << 21,) * 12, operands=(1 << 14,) * 32)
    body = Block([BlockArgument(0, 0)] * (1 << 14), [op] * 4)
    data = encode_ir(Block(operations=[Operation(0, 0, regions=[Region([body])])]), NEWEST)
    assert len(read(data).operations[0].regions[0].blocks[0].operations) == 4
    for end in range(len(data) - 200, len(data), 5):
        with pytest.raises(MalformedArtifactError):
            read(data[:end])


@pytest.mark.sample(2)
@pytest.mark.parametrize("column", ["location", "operands"])
@pytest.mark.parametrize("position", [1, 40_000, 69_999])
def test_one_index_too_large_is_found_wherever_it_stands(column: str, position: int) -> None:
    """What is read in bulk is checked in bulk, but refused at the op with the damage."""
    body = [Operation(1, 5, results=(7,), operands=(3,)) for _ in range(70_000)]
    setattr(body[position], column, 200 if column == "location" else (70_000,))
    block = Block(operations=[Operation(0, 0, regions=[Region([Block(operations=body)])], isolated=True)])
    before = Block(operations=[Operation(0, 0, regions=[Region([Block(operations=body[:position])])], isolated=True)])
    with pytest.raises(MalformedArtifactError, match=r"index (200|70000) is outside the table") as refused:
        read(encode_ir(block, NEWEST), SMALL)
    assert refused.value.offset is not None
    assert 0 <= refused.value.offset - len(encode_ir(before, NEWEST)) < 16


@pytest.mark.parametrize(("field", "value"), [("location", -1), ("operands", (-1,)), ("operands", (1 << 32,))])
def test_an_op_with_a_number_that_is_no_index_is_not_written(field: str, value: object) -> None:
    op = Operation(1, 5, results=(7,), operands=(0,))
    setattr(op, field, value)
    with pytest.raises(ValueError, match="no index"):
        encode_ir(Block(operations=[op]), NEWEST)


SMALL = TableSizes(op_names=3, attributes=200, types=20000, properties=5)
OP = Operation(2, 199, 199, 4, results=(19999, 0), operands=(1, 0))


def many(op: Operation) -> bytes:
    """Return a program of an op, many times so that the end is far."""
    values = 20 * len(op.results)
    function = Operation(0, 0, regions=[Region([Block(operations=[op] * 20)])], isolated=True)
    assert not op.operands or max(op.operands) < values + 1
    return encode_ir(Block(operations=[function]), NEWEST)


def test_indices_end_with_their_tables() -> None:
    (function,) = read(many(OP), SMALL).operations
    assert list(function.regions[0].blocks[0].operations) == [OP] * 20
    # Locations of one to four bytes.
    for location in (127, 128, 1 << 14, 1 << 21):
        (function,) = read(many(replace(OP, location=location))).operations
        assert {op.location for op in function.regions[0].blocks[0].operations} == {location}


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (replace(OP, name=3), "index 3 is outside the table of 3 op names"),
        (replace(OP, location=200), "index 200 is outside the table of 200 attributes"),
        (replace(OP, attributes=200), "index 200 is outside the table of 200 attributes"),
        (replace(OP, properties=5), "index 5 is outside the table of 5 properties"),
        (Operation(0, 0, properties=5), "index 5 is outside the table of 5 properties"),
        (Operation(0, 0, attributes=200, properties=0), "index 200 is outside the table of 200 attributes"),
        (replace(OP, results=(0, 20000)), "index 20000 is outside the table of 20000 types"),
        (replace(OP, results=(20000, 0)), "index 20000 is outside the table of 20000 types"),
        (replace(OP, operands=(0, 40)), "index 40 is outside the table of 40 values"),
        (replace(OP, operands=(40, 0)), "index 40 is outside the table of 40 values"),
    ],
)
def test_an_index_behind_the_end_is_refused_where_it_stands(op: Operation, message: str) -> None:
    with pytest.raises(MalformedArtifactError, match=message) as refused:
        read(many(op), SMALL)
    # It is the first op that is refused, whose list or number ends a few bytes behind the head of the function.
    assert refused.value.offset is not None
    assert refused.value.offset < 30


def test_a_file_that_ends_within_an_op_is_refused() -> None:
    data = many(OP)
    for length in range(len(data)):
        with pytest.raises(MalformedArtifactError):
            read(data[:length], SMALL)
    with pytest.raises(MalformedArtifactError, match="1 bytes follow the program"):
        read(data + b"\1", SMALL)


@pytest.mark.parametrize("version", range(7))
def test_regions_blocks_and_orders_of_uses(version: int) -> None:
    order = UseListOrder(None, pairs=False, indices=(1, 0))
    orders = (UseListOrder(0, pairs=False, indices=(2, 0, 1)), UseListOrder(1, pairs=True, indices=(0, 1)))
    held = [BlockArgument(1, 2), BlockArgument(3, 4)]
    inner = Region([Block([BlockArgument(5, 6)], [], (order,), 1), Block(held, [], orders, 1), Block()])
    ops = [
        Operation(1, 2, results=(1,), use_lists=(order,)),
        Operation(1, 2, results=(1, 2), use_lists=orders, successors=(2, 0)),
        Operation(1, 2, operands=(0,), regions=[inner, Region()]),
        Operation(1, 2, regions=[Region([Block(operations=[Operation(1, 2)])])], isolated=True),
    ]
    region = Region([Block(held, ops, orders, 1), Block(), Block()])
    block = Block(operations=[Operation(0, 0, regions=[region], isolated=True)])
    again = read(encode_ir(block, version), version=version)
    if version < 3:
        # Which has no place for orders of uses.
        assert encode_ir(again, version) == encode_ir(block, version)
        (function,) = again.operations
        assert function.regions[0].blocks[0].use_lists == function.regions[0].blocks[0].operations[0].use_lists == ()
    else:
        assert again == block


def test_arguments_without_a_location_need_a_version_that_has_them() -> None:
    block = Block(operations=[Operation(0, 0, regions=[Region([Block([BlockArgument(1, None)])])], isolated=True)])
    assert read(encode_ir(block, 4), version=4) == block
    with pytest.raises(ValueError, match="which version 3 of the format requires"):
        encode_ir(block, 3)


def isolated(*regions: Region) -> Operation:
    return Operation(0, 0, regions=list(regions), isolated=True)


@pytest.mark.parametrize("version", range(7))
def test_an_outline_has_no_bodies_of_functions(version: int) -> None:
    body = Region([Block([BlockArgument(1, 2)], [Operation(1, 2, results=(1,), operands=(0,))] * 30)])
    loop = Operation(1, 2, regions=[Region([Block(operations=[Operation(1, 2)])])])
    functions = [isolated(body), Operation(1, 3), isolated(body, Region()), loop]
    block = Block(operations=[isolated(Region([Block(operations=functions)]))])
    data = encode_ir(block, version)
    outline = decode_ir(ByteReader(memoryview(data)), version, TABLES, bodies=False)
    assert read(data, version=version) == block
    if version < 2:
        # Without the sizes of bodies, nothing can be passed over.
        assert outline == block
        return
    kept = [Operation(0, 0, isolated=True), Operation(1, 3), Operation(0, 0, isolated=True), loop]
    assert outline == Block(operations=[isolated(Region([Block(operations=kept)]))])
    with pytest.raises(MalformedArtifactError):
        decode_ir(ByteReader(memoryview(data[:-1])), version, TABLES, bodies=False)
