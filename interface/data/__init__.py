"""Bundled data."""
