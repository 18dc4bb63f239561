"""A connection that can be slow, cut, or dead: a relay of TCP in front of a worker."""

import contextlib
import queue
import socket
import threading
import time


class Proxy:
    """Relays connections to another address.

    Attributes:
      address: where it listens.
      delay: seconds that each piece is on its way.
      drops: whether pieces are lost. Connections stay, so neither side is told.
    """

    def __init__(self, target):
        """Begins to relay to `target`, such as `'127.0.0.1:8470'`."""
        host, _, port = target.rpartition(':')
        self._target, self.delay, self.drops = (host, int(port)), 0., False
        self._lock, self._sockets, self._threads = threading.Lock(), set(), []
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self._listener.getsockname()[1]}'
        self._begin(self._accept)

    def cut(self):
        """Cuts all connections; new ones are relayed again."""
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Ends all connections and threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _begin(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._sockets |= {near, far}
            for source, sink in ((near, far), (far, near)):
                pieces = queue.SimpleQueue()
                self._begin(self._read, source, pieces)
                self._begin(self._write, sink, pieces)

    def _read(self, source, pieces):
        piece = b'first'
        while piece:
            try:
                piece = source.recv(2**16)
            except OSError:
                piece = b''
            if not self.drops or not piece:
                pieces.put((time.monotonic() + self.delay, piece))

    @staticmethod
    def _write(sink, pieces):
        while True:
            due, piece = pieces.get()
            time.sleep(max(due - time.monotonic(), 0))
            with contextlib.suppress(OSError):
                if not piece:
                    sink.shutdown(socket.SHUT_RDWR)
                sink.sendall(piece)
            if not piece:
                return


@contextlib.contextmanager
def before(target):
    """While the body runs, a `Proxy` relays to `target`."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
