"""Intermediate values of a run: instrumentation of programs, and recording of values in memory or in a folder."""
