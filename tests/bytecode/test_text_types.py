"""Types that old releases wrote as text, although they have codes: numbers of such a type are as wide as it is."""

from __future__ import annotations

import base64

import pytest

import vhlo_tools as vt
from vhlo_tools.bytecode import decode, encode

pytestmark = pytest.mark.every_python

# module attributes {x.y = 1.0 : f8E4M3FN}, and a function that returns its argument, for StableHLO 1.13.0, by
# jaxlib 0.10.1. Later releases give the type a code.
WRITTEN = base64.b64decode(
    "TUzvUg1TdGFibGVITE9fdjEuMTMuMAABFwUBBQcBAwsDBQ8TAzUZCQERCxMLDxMTExMDCQsLCwsBAyUDBw8XBwJrBQsDAwUHBQ0TATgXAQMDFw"
    "EDWRcBA3kXAQO9AwEjBR0PHRFmOEU0TTNGTgApAQcRAwMDAwkEPwUBUQkDAQcELQMBBQNQCwMHBBkDAwcDBw0ABQQPAwEGAwEFAQB5EwMLCQUV"
    "EQ8LEWJ1aWx0aW4AdmhsbwBtb2R1bGUAZnVuY192MQByZXR1cm5fdjEALQB4LnkAbWFpbgAACBUFBQEBCxETERUX"
)


def test_a_number_of_eight_bits_is_a_byte() -> None:
    file = decode(WRITTEN)
    texts = [bytes(each.data) for each in file.types if not each.custom]
    assert texts == [b"f8E4M3FN\0"]
    numbers = [
        value
        for index in range(len(file.attributes))
        if (value := file.decode("attribute", index)) is not None and value.name == "float"
    ]
    # The bits of 1.0: no sign, an exponent of 7, which is the bias, and no mantissa.
    assert [value.field("value") for value in numbers] == [0b0_0111_000]


def test_what_is_read_is_written_and_shown() -> None:
    assert encode(decode(WRITTEN)) == WRITTEN
    assert vt.open_artifact(WRITTEN).requirements().readable_since is not None
    assert not vt.check(WRITTEN, target="1.13.0")
