"""Lowering of programs to what the reference interpreter runs."""
