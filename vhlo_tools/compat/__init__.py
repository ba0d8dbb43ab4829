"""Targets: what a consumer needs, in all the ways people say it."""

from vhlo_tools.compat.targets import Library, Target, newest_released_by, resolve_target

__all__ = ["Library", "Target", "newest_released_by", "resolve_target"]
