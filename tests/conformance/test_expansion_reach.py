"""What is counted of artifacts that reach old releases, on some of the archive."""

from __future__ import annotations

from expansion_reach import POLICIES, reach
from support.corpus_files import corpus_files

_FEATURES = ("feature_tan@", "feature_result_accuracy@", "feature_custom_call_dictionary", "trace@0.10.0")


def test_artifacts_are_counted_where_they_first_reach() -> None:
    artifacts = {
        each: (name, data) for name, data in corpus_files(ordinary=False) for each in _FEATURES if each in name
    }
    assert artifacts.keys() == set(_FEATURES)
    counts = reach(iter(artifacts.values()))
    found = {policy: counts["jaxlib==0.4.26", policy] for policy in POLICIES}
    # What has an op that was removed is readable where that op still is.
    assert [each.reached for each in found.values()] == [1, 2, 3, 3]
    assert [sorted(each.blockers.elements()) for each in found.values()] == [
        ["custom_call_dictionary_backend_config", "result_accuracy", "tan"],
        ["custom_call_dictionary_backend_config", "result_accuracy"],
        ["custom_call_dictionary_backend_config"],
        ["custom_call_dictionary_backend_config"],
    ]
    newest = [counts["jaxlib==0.8.3", policy] for policy in POLICIES]
    assert [each.reached for each in newest] == [3, 3, 3, 3]
    assert {*newest[0].blockers} == {"trace_v1"}
