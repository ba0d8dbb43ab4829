"""The test file that ``vhlo spec new-version`` writes."""

from __future__ import annotations

from string import Template

__all__ = ["TEST"]

TEST = Template('''\
"""$newer of StableHLO $version, which has $attribute: the default goes down and up again, another value is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import vhlo_tools as vt
from vhlo_tools.dialect.samples import OTHER_VALUE, sample
from vhlo_tools.dialect.specification import load_specification
from vhlo_tools.dialect.stepping import Operation, downgrade, upgrade

SPECS = load_specification(Path(__file__).resolve().parent / "$specs")
BEFORE, VERSION = vt.Version("$before"), vt.Version("$version")


@pytest.fixture
def operation() -> Operation:
    return sample(SPECS, SPECS.op_versions["$newer"])


def test_default_goes_down_and_up_again(operation: Operation) -> None:
    older = downgrade(operation, BEFORE, SPECS)
    assert older.name == "$older"
    assert "$attribute" not in older.attributes
    default = SPECS.default("$default")
    assert default is not None
    newer = upgrade(older, VERSION, SPECS)
    assert newer.attributes["$attribute"] == default.value
    assert newer == operation


def test_another_value_is_refused(operation: Operation) -> None:
    # Put a value here that means something for $op.
    other = replace(operation, attributes={**operation.attributes, "$attribute": OTHER_VALUE})
    assert downgrade(other, VERSION, SPECS) == other
    with pytest.raises(vt.DowngradeError, match="$attribute is not its default") as refused:
        downgrade(other, BEFORE, SPECS)
    assert [finding.feature for finding in refused.value.findings] == ["$feature"]
''')
