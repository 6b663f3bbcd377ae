"""Broken mechanisms, one kind per file: each does something else than it states, and an audit has to see it."""
