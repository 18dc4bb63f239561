"""Takes a job to the other API: its tables and variables, its declaration, and proofs of both.

`checkpoint` in the names of modules means files on disk, `source` Python text.
"""
