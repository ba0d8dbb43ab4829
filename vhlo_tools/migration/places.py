"""Places where a migration may read and write: folders, and prefixes of keys in stores."""

from __future__ import annotations

import os
from typing import Self

from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.records import dataclass
from vhlo_tools.stores import base_of, resolved


@dataclass(frozen=True, slots=True)
class Places:
    """Places where a migration may read and write files, with all links resolved."""

    roots: tuple[str, ...]  # the folder of results, or the folders of the paths
    in_place: bool  # whether results replace files, or are beside them
    named: frozenset[str]  # files that are paths of the migration themselves: migrated wherever they are

    @classmethod
    def of(cls, settings: MigrationSettings) -> Self:
        if settings.output_dir:
            return cls((resolved(settings.output_dir),), False, frozenset())
        return cls(
            tuple(resolved(base_of(path)) for path in settings.paths),
            True,
            frozenset(resolved(path) for path in settings.paths),
        )

    def is_outside(self, source: str, place: str) -> bool:
        """Whether a result, or the file that it replaces, is outside of all these places."""
        return source not in self.named and not any(_is_in(place, each) for each in self.roots)

    def allow(self, source: str, destination: str) -> bool:
        """Whether a migration may read one file and write the other."""
        if not self.in_place:
            return not self.is_outside(source, destination)
        beside = os.path.dirname(source) == os.path.dirname(destination)  # noqa: PTH120
        return not self.is_outside(source, source) and (beside or not self.is_outside("", destination))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)
