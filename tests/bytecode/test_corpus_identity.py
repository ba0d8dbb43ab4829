"""The identity, the inventory and the text over everything that released packages wrote."""

from __future__ import annotations

from collections import Counter

import pytest
from check_identity import KINDS, check
from support.corpus_files import corpus_files

from vhlo_tools.artifact import Artifact
from vhlo_tools.artifact.inventory import take_inventory
from vhlo_tools.bytecode import decode, encode, entry_name, print_program, strip_locations
from vhlo_tools.spec import find_op_version

pytestmark = pytest.mark.every_python


def test_every_file_is_itself_again() -> None:
    number = 0
    for name, data in corpus_files():
        try:
            check(data)
        except AssertionError as error:
            raise AssertionError(name) from error
        number += 1
    assert number >= 2000


def test_all_of_vhlo_is_known() -> None:
    unknown: Counter[str] = Counter()
    for _, data in corpus_files():
        file = decode(data)
        for kind, table in zip(KINDS, (file.attributes, file.types), strict=True):
            for index, entry in enumerate(table):
                if file.decode(kind, index) is None:
                    unknown[entry_name(file, kind, entry)] += 1
    assert not [name for name in unknown if name.startswith("vhlo ")]


@pytest.mark.whole_data("the corpus has ops that releases since wrote")
def test_every_op_of_vhlo_is_specified_and_within_its_life() -> None:
    for name, data in corpus_files(ordinary=False):
        artifact = Artifact(data)
        for op in artifact.dialects.get("vhlo", []):
            known = find_op_version(op)
            assert known is not None, (name, op)
            assert known.is_in(artifact.version), (name, op)


@pytest.mark.long
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
