"""The identity, the inventory and the text over everything that released packages wrote."""

from __future__ import annotations

from collections import Counter

from corpus_files import corpus_files

from vhlo_tools.artifact.inventory import take_inventory
from vhlo_tools.bytecode import decode, encode, encode_entry, entry_name, strip_locations
from vhlo_tools.bytecode.printing import print_program


def test_every_file_is_itself_again() -> None:
    unknown: Counter[str] = Counter()
    number = 0
    for name, data in corpus_files():
        file = decode(data)
        file.load()
        assert encode(file) == data, name
        for index, entry in enumerate(file.attributes):
            value = file.decode("attribute", index)
            if value is None:
                unknown[entry_name(file, "attribute", entry)] += entry.custom
            else:
                assert encode_entry(file, "attribute", value) == entry.data, (name, value)
        for index, entry in enumerate(file.types):
            value = file.decode("type", index)
            if value is None:
                unknown[entry_name(file, "type", entry)] += entry.custom
            else:
                assert encode_entry(file, "type", value) == entry.data, (name, value)
        number += 1
    assert number >= 2000
    # All of VHLO is known; of MLIR's own what artifacts hold.
    assert not [name for name in unknown if name.startswith("vhlo ") and unknown[name]]


def test_every_file_is_described_printed_and_stripped() -> None:
    for name, data in corpus_files(ordinary=False):
        file = decode(data)
        inventory = take_inventory(file)
        assert inventory.ops["builtin.module"] >= 1, name
        assert '"builtin.module"' in print_program(file, debug_info=True)
        strip_locations(file)
        stripped = decode(encode(file))
        assert "loc(" not in print_program(stripped, debug_info=True).replace("loc(unknown)", ""), name
        assert take_inventory(stripped).ops == inventory.ops
