"""The engine ``xla``: programs compiled by XLA for the CPU, on one device or several."""
