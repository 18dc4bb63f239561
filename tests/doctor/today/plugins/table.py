"""A class that its package hands out lazily, and a circular import."""
from . import readers


class Table:
    tf = None

    def rows(self):
        return readers.csv.Reader().rows + (self.tf.mul if self.tf else 1)
