"""Expansions: rewrites of newer features into older ones, in modules of patterns.

``dialect_specs/vhlo/features.toml`` declares them beside their features, with the name of their module and, where a
module has several, their name in it: ``collectives.mesh_axes`` is ``MESH_AXES_EXACT``, patterns by the names of ops.
"""
