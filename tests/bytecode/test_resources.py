"""The resource sections, written and read again."""

from __future__ import annotations

import pytest

from vhlo_tools import MalformedArtifactError
from vhlo_tools.bindings import Provider
from vhlo_tools.bytecode import decode, encode, inline_resources
from vhlo_tools.bytecode.container import Resource, ResourceGroup, ResourceKind, decode_resources, encode_resources
from vhlo_tools.bytecode.primitives import ByteReader

pytestmark = pytest.mark.every_python

STRINGS, DIALECTS = 8, 2


def read(keys: bytes, values: bytes) -> list[ResourceGroup]:
    return decode_resources(ByteReader(memoryview(keys)), ByteReader(memoryview(values)), STRINGS, DIALECTS)


def again(groups: list[ResourceGroup]) -> list[ResourceGroup]:
    keys, values, _ = encode_resources(groups)
    return read(keys, b"".join(map(bytes, values)))


def group(owner: int, *, external: bool, key: int = 0) -> ResourceGroup:
    return ResourceGroup(owner, external, (Resource(key, ResourceKind.BOOL, b"\1"),))


def test_owners_are_strings_or_dialects() -> None:
    groups = [group(STRINGS - 1, external=True), group(DIALECTS - 1, external=False)]
    assert again(groups) == groups
    for wrong, table in ((group(STRINGS, external=True), "8 strings"), (group(DIALECTS, external=False), "2 dialects")):
        with pytest.raises(MalformedArtifactError, match=f"is outside the table of {table}"):
            again([wrong])
    with pytest.raises(MalformedArtifactError, match="index 8 is outside the table of 8 strings"):
        again([group(0, external=False, key=STRINGS)])


def test_blobs_stand_aligned() -> None:
    blobs = (
        Resource(0, ResourceKind.BLOB, b"abc", 1),
        Resource(1, ResourceKind.BLOB, b"x" * 64, 64),
        Resource(2, ResourceKind.STRING, b"\3text"),
        Resource(3, ResourceKind.BLOB, b"y" * 16, 16),
        Resource(4, ResourceKind.BLOB, b"", 0),
        Resource(5, ResourceKind.BLOB, b"", left_out=True),
    )
    keys, values, alignment = encode_resources([ResourceGroup(0, False, blobs)])
    assert alignment == 64
    data = b"".join(map(bytes, values))
    assert (data.index(b"x" * 64) % 64, data.index(b"y" * 16) % 16) == (0, 0)
    (found,) = read(keys, data)
    assert [(each.key, each.kind, bytes(each.data), each.alignment, each.left_out) for each in found.resources] == [
        (each.key, each.kind, each.data, each.alignment, each.left_out) for each in blobs
    ]


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ("05 01 01", "", "2 resource groups were announced, but the section has 1"),
        ("01 01 03 01 03 03", "01", "unknown kind 3 of resource"),
        ("01 01 03 01 03 01", "01 01", "1 bytes follow the last resource"),
        ("01 01 03 01 07 00", "07 03 00", "alignment 3 is not a power of two"),
        ("01 01 03 01 07 00", "01 03 00", "alignment 0 is not a power of two"),
        ("01 01 03 01 07 00", "03 05 00", "a blob of 2 bytes where 1 remain"),
    ],
)
def test_damage(keys: str, values: str, message: str) -> None:
    with pytest.raises(MalformedArtifactError, match=message):
        read(bytes.fromhex(keys), bytes.fromhex(values))


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 17])
def test_booleans_of_a_byte_each_are_packed(number: int, provider: Provider) -> None:
    values = [n % 3 == 0 for n in range(number)]
    kind = f"tensor<{number}xi1>"
    blob = f"0x01000000{bytes(values).hex().upper()}"
    text = f"func.func @main() {{ %0 = stablehlo.constant dense_resource<r> : {kind} return }}"
    resources = f'{{-# dialect_resources: {{ builtin: {{ r: "{blob}" }} }} #-}}'
    module = provider.parse(provider.new_context(), f"{text}\n{resources}")
    file = decode(b"".join(provider.bytecode(module, provider.library.current)))
    inline_resources(file)
    written = ", ".join(str(each).lower() for each in values)
    dense = "dense<>" if not number else f"dense<{values[0]}>".lower() if number == 1 else f"dense<[{written}]>"
    assert f"{dense} : {kind}" in provider.text(provider.parse(module.context, encode(file)))
