"""The reference interpreter in a child process, and the preparation of programs for it."""
