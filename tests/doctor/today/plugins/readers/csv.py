"""Has the name of a module of Python."""


class Reader:
    rows = 2
