"""Is a client of a cluster until its input ends, and tells its workers as JSON.

    python -m harness.cluster_client ADDRESSES|NUMBER
"""

import json
import sys
import threading

from estimator_tpu_embedding.cluster import heartbeats
from estimator_tpu_embedding.cluster.cluster import Cluster
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice


def main(what):
    """Has workers, which it starts from a thread that ends at once if they are its own."""
    heartbeats.SILENCE = 30.  # A busy machine is no loss, and no test asks this client for one.
    choice = (ClusterChoice(processes=int(what), expose=True) if what.isdecimal()
              else ClusterChoice(tuple(what.split(',')), expose=True))
    cluster = Cluster(choice)
    thread = threading.Thread(target=cluster.prepare)
    thread.start()
    thread.join()
    print(json.dumps({'pids': cluster.pids(), 'addresses': cluster.addresses(),
                      'incarnations': cluster.incarnations()}), flush=True)
    sys.stdin.read()


if __name__ == '__main__':
    main(sys.argv[1])
