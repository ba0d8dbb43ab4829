"""Reader of jax.export files: a FlatBuffer with an artifact and the calling information of its function."""
