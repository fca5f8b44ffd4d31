"""Heads that guess several tokens ahead of a target."""
