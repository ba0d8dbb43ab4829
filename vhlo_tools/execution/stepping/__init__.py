"""Stepping through programs in Python, if they contain ops that the reference interpreter cannot run.

These are custom calls and collectives. Functions, loops and branches with such ops are stepped through; the interpreter
evaluates all other ops, in segments of maximal length. Values that are probed become additional results of their
segments. Devices run in lockstep, so that their number does not depend on the machine.
"""
