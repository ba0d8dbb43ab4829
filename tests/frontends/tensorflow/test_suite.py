"""Functions of TensorFlow as people write them: both engines give what TensorFlow gives, or the op is named."""

from __future__ import annotations

import pytest
from tensorflow_suite import CASES, ENGINES, REFUSED, distance, expected, exported

import vhlo_tools as vt
from vhlo_tools.integrations.tensorflow import export


@pytest.mark.parametrize("name", CASES)
def test_both_engines_give_what_tensorflow_gives(name: str) -> None:
    case = CASES[name]
    artifact, wanted = exported(name), expected(case)
    for engine in ENGINES:
        assert distance(vt.run(artifact, case.inputs, engine=engine), wanted) <= case.tolerance, engine
    assert all(each.level == "note" for each in artifact.findings)


@pytest.mark.parametrize("name", REFUSED)
def test_what_xla_lacks_is_refused_by_the_name_and_the_line_of_the_op(name: str) -> None:
    function, inputs, op = REFUSED[name]
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(function, *inputs, name=name)
    (found,) = {(each.op, each.location) for each in caught.value.findings}
    assert found[0] == op
    if function.__module__ == CASES["while"].function.__module__:
        assert found[1] is not None
        assert found[1].file.endswith("tensorflow_suite.py")


def test_there_are_more_than_twenty() -> None:
    assert len(CASES) > 20
