"""What an integration needs and this package does not install by itself."""

from __future__ import annotations

from importlib.util import find_spec

from vhlo_tools.errors import MissingExtraError

__all__ = ["require_extra"]


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """Return if ``packages`` can be imported, without importing them.

    Args:
        extra: The extra of this distribution that installs them.
        purpose: What needs them, as the message begins.
        packages: Their import names.

    Raises:
        MissingExtraError: If one is missing.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise MissingExtraError(
            f"{purpose} needs {' and '.join(missing)}, which {are} not installed: pip install 'vhlo-tools[{extra}]'"
        )
