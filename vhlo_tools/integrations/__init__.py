"""Programs of frameworks, each behind an extra of the package and imported only when it is used.

:mod:`~vhlo_tools.integrations.jax`, :mod:`~vhlo_tools.integrations.torch`,
:mod:`~vhlo_tools.integrations.tensorflow` and :mod:`~vhlo_tools.integrations.keras` import without their framework;
the functions within need it, and say so.
"""
