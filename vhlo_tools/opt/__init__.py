"""Upstream's programs, ``stablehlo-opt`` and ``stablehlo-translate``, made of what the bindings have.

This package is imported before a process of its own is forked for the work: it loads nothing by itself.
"""
