"""Where a migration may read and write: folders, and prefixes of keys in stores."""

from __future__ import annotations

import os
from typing import Self

from vhlo_tools.migration.request import MigrationSettings
from vhlo_tools.records import dataclass
from vhlo_tools.stores import base_of, resolved


@dataclass(frozen=True, slots=True)
class Places:
    """Where a migration may read and write files, with all links resolved.

    Attributes:
        roots: The folder of results, or the folders of the paths.
        in_place: Whether results replace files, or stand beside them.
        named: The files that are paths of the migration themselves: they are migrated wherever they are.
    """

    roots: tuple[str, ...]
    in_place: bool
    named: frozenset[str]

    @classmethod
    def of(cls, settings: MigrationSettings) -> Self:
        """Return the places of a migration."""
        if settings.output_dir:
            return cls((resolved(settings.output_dir),), False, frozenset())
        return cls(
            tuple(resolved(base_of(path)) for path in settings.paths),
            True,
            frozenset(resolved(path) for path in settings.paths),
        )

    def is_outside(self, source: str, place: str) -> bool:
        """Return whether a result, or the file that it replaces, is outside of all these places."""
        return source not in self.named and not any(_is_in(place, each) for each in self.roots)

    def allow(self, source: str, destination: str) -> bool:
        """Return whether a migration with these places may read one file and write the other."""
        if not self.in_place:
            return not self.is_outside(source, destination)
        beside = os.path.dirname(source) == os.path.dirname(destination)  # noqa: PTH120
        return not self.is_outside(source, source) and (beside or not self.is_outside("", destination))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)
