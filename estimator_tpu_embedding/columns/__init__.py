"""Turns TF1 feature columns into specs, and into functions that read their features."""
