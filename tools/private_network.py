#!/usr/bin/env python3
"""Runs a command in a network of its own, in which only its own processes reach each other.

    unshare --map-root-user --net python3 tools/private_network.py COMMAND [ARGUMENT ...]

`unshare` is part of util-linux. A new network has one interface, loopback, which is down at first.
The command sees its own user as root; what it may do to files is the same as before. The
administrator leaves out `--map-root-user`, which would take rights away: to make devices, for one.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

UNSHARE = ('unshare', '--net'), ('unshare', '--map-root-user', '--net')
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
INTERFACE = '16sH14x'  # struct ifreq: the name, the flags, and what is not used here


def before(python: object) -> list[object]:
    """Returns what comes before a command for that; nothing if this machine does not allow it.

    Args:
      python: an interpreter.
    """
    for command in UNSHARE if shutil.which('unshare') else ():
        if not subprocess.run([*command, 'true'], capture_output=True).returncode:
            return [*command, python, __file__]
    return []


def main() -> None:
    """Raises the interface, and becomes the command."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack(INTERFACE, b'lo', UP_AND_RUNNING))
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == '__main__':
    main()
