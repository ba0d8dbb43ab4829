"""Drafts of features: one for all that a version brought and one for all that it newly allows, for a person to name."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from vhlo_tools.dialect.scaffold.changes import stem
from vhlo_tools.dialect.scaffold.document import array, quoted
from vhlo_tools.dialect.scaffold.drafts import Drafts
from vhlo_tools.dialect.specification import Specification
from vhlo_tools.findings import FindingKind
from vhlo_tools.records import dataclass
from vhlo_tools.version import Version

_FILE: Final = "vhlo/features.toml"


@dataclass(slots=True)
class _Draft:
    id: str
    kind: FindingKind
    ops: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)


class FeatureDrafts:
    """One feature per version: a version mostly brings one thing, such as an op with its types.

    A person divides the feature where that is wrong.
    """

    def __init__(self, specs: Specification) -> None:
        self._taken = {feature.id for feature in specs.features}
        self._drafts: dict[tuple[Version, bool], _Draft] = {}

    def add(self, version: Version, kind: FindingKind, wanted: str, *, op: str = "", name: str = "") -> str:
        """Add something to the feature of ``version``, and return the id of the feature.

        Constraints have a feature of their own; ``wanted`` is the id if this is the first thing in the feature.
        """
        key = (version, kind == "constraint")
        if key not in self._drafts:
            wanted = stem(wanted).replace("-", "_")
            identifier = wanted if wanted not in self._taken else f"{wanted}_{version.major}_{version.minor}"
            self._taken.add(identifier)
            self._drafts[key] = _Draft(identifier, kind)
        draft = self._drafts[key]
        if op:
            draft.ops[op] = None
            # A consumer meets the op first, whatever types and attributes came with it.
            draft.kind = "op" if kind == "op" else draft.kind
        if name:
            draft.names[name] = None
        return draft.id

    def write(self, drafts: Drafts, notes: dict[Version, str]) -> None:
        """Each feature gets a task: to name it and to describe its remedy."""
        document = drafts.document(_FILE)
        for (version, _), draft in sorted(self._drafts.items(), key=lambda item: item[0]):
            title = notes.get(version, "").rstrip(".") or draft.id
            lists = (("ops", draft.ops), ("names", draft.names))
            lines = "".join(f"{key} = {array(list(names))}\n" for key, names in lists if names)
            document.append(
                f'[[feature]]\nid = "{draft.id}"\ntitle = {quoted(title)}\nkind = "{draft.kind}"\n'
                f'introduced = "{version}"\n{lines}remedy = {quoted(f"choose {version} or later")}\n'
            )
            what = f"name the feature of {version}, and describe how to do without it"
            drafts.leave(_FILE, "feature", draft.id, "id", what)
