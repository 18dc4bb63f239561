"""Declarations of jobs, read from configs and Python objects, and written as Python source."""
