"""Ops of the ``check`` dialect, which no bindings contain: verification, parsing, printing and evaluation."""
