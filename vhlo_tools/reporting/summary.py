"""Counts of the programs of a report, by result, and of its findings, by feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    from vhlo_tools.findings import Finding
    from vhlo_tools.reporting.model import Answer, State

#: The results that the summary names, with their words for one program and for several.
_WORDS: Final[dict[State, tuple[str, str]]] = {
    "unreadable": ("cannot be checked", "cannot be checked"),
    "blocked": ("has errors", "have errors"),
    "warned": ("has warnings", "have warnings"),
}


@dataclass(slots=True)
class Summary:
    states: Counter[State] = field(default_factory=Counter)
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)  # new ones, by level and feature
    samples: dict[str, Finding] = field(default_factory=dict)  # one finding of each feature

    def add(self, answer: Answer) -> None:
        self.states[answer.state] += 1
        for _, finding in answer.findings:
            self.findings[finding.level, finding.feature] += finding.count
            self.samples.setdefault(finding.feature, finding)

    def counting(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        for answer in answers:
            self.add(answer)
            yield answer

    def statistics(self) -> list[dict[str, str | int]]:
        """The most frequent findings come first."""
        from vhlo_tools.reporting.sarif_rules import title_of  # imported here because few reports need it

        return [
            {"count": count, "level": level, "feature": feature, "title": title_of(self.samples[feature])}
            for (level, feature), count in sorted(self.findings.items(), key=lambda each: (-each[1], each[0]))
        ]

    def as_json(self) -> dict[str, int]:
        return {"programs": self.states.total(), "ok": self.states["ok"]} | {each: self.states[each] for each in _WORDS}

    def __str__(self) -> str:
        counts = ((self.states[state], words) for state, words in _WORDS.items())
        said = ", ".join(f"{count} {words[count > 1]}" for count, words in counts if count)
        number = self.states.total()
        return f"checked {number} program{'' if number == 1 else 's'}: {said or 'no errors'}"
