"""Frozen facts and arithmetic. Imports nothing heavier than NumPy, and that only where used."""
