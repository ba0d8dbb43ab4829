"""Programs rewritten so that the reference interpreter can run them, with the same meaning."""

from vhlo_tools.interpreter.lowering.rules import RULES, apply_rules

__all__ = ["RULES", "apply_rules"]
