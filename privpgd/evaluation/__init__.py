"""Metrics, datasets and results."""
