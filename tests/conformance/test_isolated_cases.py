"""Cases in processes of their own: each ends somehow, and none keeps another from it."""

from __future__ import annotations

from isolated_cases import work_off


def test_a_process_that_dies_hangs_or_raises_harms_no_other_case() -> None:
    cases = ["one", "abort", "two", "hang", "three", "leave", "raise", "four"]
    ended = {each.case: each for each in work_off("support.mortal_worker:work", cases, timeout=4, starting=60)}
    assert {case: (each.how, each.result) for case, each in ended.items() if case != "raise"} == {
        "one": ("done", "ONE"),
        "abort": ("died", "SIGABRT"),
        "two": ("done", "TWO"),
        "hang": ("too-long", None),
        "three": ("done", "THREE"),
        "leave": ("died", "exit code 3"),
        "four": ("done", "FOUR"),
    }
    assert ended["raise"].how == "raised"
    assert "KeyError: 'what is missing'" in ended["raise"].result


def test_no_cases_take_no_processes() -> None:
    assert list(work_off("support.mortal_worker:work", [], timeout=1)) == []
