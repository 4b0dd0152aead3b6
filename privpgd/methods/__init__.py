"""Generators, each behind the same protocol."""
