"""A package whose names come from its modules."""
from __future__ import absolute_import

from .model import Model
from .data import read, SCHEMA
