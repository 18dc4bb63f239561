"""Rows of tables in files of other programs: out of checkpoints, and into new ones."""
