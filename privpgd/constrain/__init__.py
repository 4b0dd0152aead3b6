"""Penalties, statistics, bounds, rules and public facts."""
