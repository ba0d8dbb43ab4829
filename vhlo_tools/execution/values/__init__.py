"""Values that engines exchange: arrays, flattening and nesting of tuples, and the entry function."""
