"""How many requests it takes to replace an object, and what happens if it is not there any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.corpus import EXAMPLES
from support.store_buckets import Bucket

import vhlo_tools as vt
from vhlo_tools.errors import ObjectChangedError
from vhlo_tools.files import counted, delete_object, objects_under, open_object, read_object, write_object

FROM, TARGET = "1.9.0", "1.1.0"


@pytest.fixture(params=["s3", "azure", "memory"])
def store(request: pytest.FixtureRequest, make_bucket: Callable[[str], Bucket]) -> Bucket:
    return make_bucket(request.param)


def requests_of(store: Bucket, number: int) -> int:
    for each in range(number):
        vt.serialize(EXAMPLES / "saxpy.mlir", FROM).save(str(store / f"{number}/{each}.mlirbc"))
    with counted() as traffic:
        assert {each.status for each in vt.migrate(str(store / f"{number}/"), TARGET)} == {"moved"}
    return traffic.requests


def test_an_object_takes_two_requests(store: Bucket) -> None:
    """It is read, and replaced on the condition that it is what was read; nobody asks for it in between."""
    # In the first, it is found out whether the store honours conditions.
    requests_of(store, 1)
    assert requests_of(store, 9) - requests_of(store, 4) == 2 * 5


def test_an_object_that_was_deleted_is_not_made_again(store: Bucket) -> None:
    write_object(store / "object", [b"first"])
    _, first = read_object(store / "object")
    delete_object(store / "object")
    with pytest.raises(ObjectChangedError, match="nothing was written"):
        write_object(store / "object", [b"late"], replaces=first)
    assert not [each for page in objects_under(store.url) for each in page]


def test_nothing_of_a_large_object_is_sent_in_vain(store: Bucket) -> None:
    write_object(store / "object", [b"first"])
    _, first = read_object(store / "object")
    write_object(store / "object", [b"second"], replaces=first)
    with counted() as traffic, pytest.raises(ObjectChangedError):
        write_object(store / "object", [bytes(20 << 20)], replaces=first)
    assert traffic.bytes_written == 0
    assert open_object(store / "object") == b"second"
