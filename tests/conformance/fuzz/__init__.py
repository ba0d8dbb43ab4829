"""The fuzzing campaign: damaged and hostile inputs to every function and command, by structure-aware mutation.

`seeds` collects valid files of every format; the modules `mutate_*` change them, `layers` and `commands` say what is
called with the result, `watch` and `worker` run it under limits, and `campaign` hands inputs to workers and counts.
"""
