"""Looks, before a session is made, whether the workers have what it needs: memory and the disk."""

from __future__ import annotations

from collections.abc import Sequence

from . import room, shared_disk
from .opening import Opened


def require(opened: Sequence[Opened], needed: Sequence[int], directory: str = '',
            checkpoint: str = '') -> None:
    """Makes sure that workers can hold tables, and that they see the files of a job.

    Args:
      opened: the workers, by host.
      needed: bytes of rows and slots of each host; empty if nobody knows.
      directory: that the job writes into, an absolute path; `''` if it writes none.
      checkpoint: the prefix of the one that is restored, an absolute path; `''` for none.

    Raises:
      ConfigError: E744 if tables do not fit.
      SetupError: E741 if a worker sees other files, E742 if it cannot write any.
      HostLostError: E707 if a worker does not answer.
    """
    addresses = [one.address for one in opened]
    if needed:
        room.require_room(addresses, [int(one.status['room']) for one in opened], needed)
    if directory:
        shared_disk.require_shared(addresses, directory)
    if checkpoint:
        shared_disk.require_same(addresses, checkpoint)
