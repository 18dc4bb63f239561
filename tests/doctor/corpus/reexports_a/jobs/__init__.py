"""Hands out what its modules define."""
from .tower import *
from .tower import net as tower_net
