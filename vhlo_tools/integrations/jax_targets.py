"""Targets of jax.export files."""

from __future__ import annotations

from datetime import date

from vhlo_tools.compat import Library, Target, resolve_target
from vhlo_tools.version import Version


def resolved_target(target: str | Version, as_of: date | None, provider: str | None) -> Target:
    """The bindings are loaded only for targets that refer to them."""

    def library() -> Library:
        # Imported here because few targets need it.
        from vhlo_tools.bindings import get_provider

        return get_provider(provider).library

    return resolve_target(str(target), library, as_of=as_of).specified(library)
