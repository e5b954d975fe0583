"""Exploration by self-chosen goals."""
