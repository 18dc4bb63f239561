"""Frozen facts and arithmetic. Imports numpy and nothing heavier."""
