"""What old releases read of what no conversion changes, and what their verifiers refuse: both are facts of versions."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import module_attributes
import old_verifiers
from support.release_environments import run_in

import vhlo_tools as vt

pytestmark = pytest.mark.releases

RELEASES = ("jaxlib==0.4.20", "jaxlib==0.4.31", "jaxlib==0.5.3")
#: Written by its own release: the dimension numbers of a gather before there were batching dimensions.
_OLD_GATHER = """
import sys
from jaxlib.mlir.dialects import stablehlo
text = "module attributes {t.x = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>} {}"
sys.stdout.buffer.write(stablehlo.serialize_portable_artifact(text, "0.9.0"))
"""


@cache
def attributes() -> list[tuple[str, vt.Artifact]]:
    return list(module_attributes.drawn(49, 80, ["0.9.0"]))


@cache
def quantized() -> list[old_verifiers.Written]:
    ops = ["abs", "add", "ceil", "floor", "iota", "reduce_precision", "round_nearest_afz", "sine", "transpose"]
    return list(old_verifiers.written(old_verifiers.QUANTIZED[2:3], ops))


@pytest.mark.parametrize("release", RELEASES)
def test_attributes_of_modules_that_no_conversion_changes(release: str) -> None:
    counts, wrong = module_attributes.wrong_answers(attributes(), release)
    assert wrong == []
    assert min(counts["read"], counts["refused"]) > 8


@pytest.mark.parametrize("release", ["jaxlib==0.4.13", "jaxlib==0.4.20", "jaxlib==0.4.26"])
def test_quantized_elements_that_verifiers_came_to_accept(release: str) -> None:
    assert [(each.op, said) for each, said in old_verifiers.wrong_answers(quantized(), release)] == []
    assert len(quantized()) > 12


def test_dimension_numbers_in_the_layout_of_their_time() -> None:
    written = run_in("jaxlib==0.4.20", _OLD_GATHER)
    artifact = vt.Artifact(written.stdout)
    for release, expected in (("jaxlib==0.4.20", []), ("jaxlib==0.4.31", ["withdrawn_attribute_7"])):
        findings = artifact.requirements().reader_findings(vt.resolve_target(release).version)
        assert [each.feature for each in findings] == expected
        assert not module_attributes.wrong_answers([("gather", artifact)], release)[1]
