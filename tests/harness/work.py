"""Counts the work of a piece of this process, which is the same however busy the machine is."""

import sys


def calls_of(function):
    """Returns how many calls, of Python and of C, a function makes, itself included."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event in ('call', 'c_call')

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
