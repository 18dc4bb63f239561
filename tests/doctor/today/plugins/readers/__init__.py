"""Hands out a module under the name of one of Python."""
from . import csv
