"""Donation of buffers: inputs that an execution may overwrite, references to these, and the report of a run."""
