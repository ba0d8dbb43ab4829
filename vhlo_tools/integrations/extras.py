"""Optional packages that an integration needs."""

from __future__ import annotations

from importlib.util import find_spec

from vhlo_tools.errors import MissingExtraError, installing


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """Raise ``MissingExtraError`` if a package, by import name, is not installed; the packages are not imported."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(
            f"{purpose} needs {' and '.join(missing)}, which {are} not installed: {installing(extra)}"
        )
