"""Devices of a run: the grid of replicas and partitions, meshes, and values split into parts."""
