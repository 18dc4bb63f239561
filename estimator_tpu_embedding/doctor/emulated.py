"""Says in one sentence how each TPU-only call is emulated here (I311), or that it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .facts import Finding, ScannedFile

_REPLICAS = 'in the default graph, and the first of them alone changes variables'
_NEEDS_GRAPH = '; with eager execution on it raises E917, so build it in a tf.Graph()'
_NO_KERNEL = ('TensorFlow has this operation for TPUs only, and nothing emulates it: the session '
              'that runs it raises InvalidArgumentError')

SENTENCES = {
    'AsyncCheckpointSaverHook': 'saves between two loops; in a TPUEstimator a thread then checks '
                                'the files and publishes them',
    'CrossShardOptimizer': 'sums the gradients of all emulated cores; on one core it changes '
                           'nothing',
    'EmbeddingConfigSpec': 'its optimizer trains the tables on emulated hosts; an id outside of '
                           'its vocabulary is an error, unless --ids or id_policy says otherwise',
    'RunConfig': 'addresses in it mean the emulated system, and nothing is contacted',
    'TPUClusterResolver': 'finds the emulated system under any name or address; nothing is '
                          'contacted',
    'TPUConfig': 'num_shards sets the size of the emulated system, unless --hosts or --cores do',
    'TPUConfig.experimental_feed_hook': 'its SessionRunHook methods are called; one that replaces '
                                        'the threads of the feed is refused (E907)',
    'TPUConfig.input_partition_dims': 'has no effect but a warning (W462): the cores of a replica '
                                      'share one memory',
    'TPUConfig.iterations_per_loop': 'so many steps pass in one call of the session, as hooks see '
                                     'it; they are steps of Python, not of a compiled loop',
    'TPUConfig.num_cores_per_replica': 'a replica takes so many emulated cores, which share one '
                                       'memory',
    'TPUConfig.per_host_input_for_training': 'input_fn is called, and its batches are cut among '
                                             'emulated cores, as this says',
    'TPUConfig.tpu_job_name': 'has no effect: nothing here is a job of a TPU worker',
    'TPUContext': 'tells the place in the emulated system: its hosts, replicas and this call',
    'TPUEmbedding': 'looks up and updates rows in variables of the graph; to load and to retrieve '
                    'copies nothing',
    'TPUEmbeddingForServing': "is TensorFlow's own; a warning (W008) says if the optimizer of a "
                              'model trains its tables',
    'TPUEstimator': 'runs on emulated hosts and cores: model_fn is called once per core, tables '
                    'are spread over the hosts',
    'TPUEstimatorSpec': "core 0's train_op, hooks and summaries run; the loss is the mean over all "
                        'cores',
    'TPUEstimatorSpec.eval_metrics': 'its function gets the samples of all cores',
    'TPUEstimatorSpec.host_call': 'its function gets the tensors of all cores, joined, when a '
                                  'step is complete',
    'TPUEstimatorSpec.scaffold_fn': 'is called as on a TPU, and may use tensors of the model',
    'TPUInfeedOutfeedSessionHook': 'can be extended for experimental_feed_hook; the threads that '
                                   'draw batches are not its own',
    'TPUStrategy': 'its replicas are logical CPU devices, one per emulated core; the Python of a '
                   'step runs once per replica',
    'batch_parallel': f'makes a replica per shard {_REPLICAS}',
    'bfloat16_scope': 'works: variables stay float32, and the CPU computes in bfloat16',
    'context': 'is there: a TPUContext with the emulated hosts and cores',
    'core': 'names a device that is not here: sessions need allow_soft_placement=True, as '
            "Estimators' have, and the CPU computes",
    'cross_replica_sum': 'sums over the emulated cores; on one core it is the value itself',
    'embedding.TPUEmbedding': 'looks up in one engine of this process; each table is one variable '
                              "with TensorFlow's checkpoint keys",
    'embedding_column': 'its table is spread over emulated hosts, and words of a vocabulary may '
                        'come as they are',
    'initialize_system': 'returns the topology of the emulated system, which needs no start',
    'initialize_tpu_system': 'returns the topology of the emulated system, which needs no start',
    'outside_compilation': 'calls the function as it is, in the same graph: nothing is compiled',
    'repeat': 'loops within the graph; to train on several cores there is refused (E926)',
    'replicate': f'makes a replica per entry of its inputs {_REPLICAS}',
    'rewrite': 'makes one replica in the default graph; nothing is compiled',
    'shard': f'makes a replica per shard {_REPLICAS}',
    'shared_embedding_columns': 'its table is spread over emulated hosts, and words of a '
                                'vocabulary may come as they are',
    'shutdown_system': 'does nothing: the emulated system ends with the process',
    'shutdown_tpu_system': 'does nothing but permit another TPUEmbedding',
    'while_loop': 'loops within the graph; to train on several cores there is refused (E926)',
    'xla.compile': "is TensorFlow's own: XLA compiles for the CPU"}
"""By the kind of the fact."""

REFUSED = {
    'InfeedQueue': 'it can be made, but what it builds is refused (E925): there is no infeed here; '
                   'give tensors as inputs of tf.tpu.shard, and call session.run for each step',
    'all_to_all': _NO_KERNEL,
    'collective_permute': _NO_KERNEL,
    'feed operation': 'refused (E925): there is no infeed and no outfeed here; give tensors as '
                      'inputs of tf.tpu.shard, and call session.run for each step'}
"""What raises an error when it is used."""

_IN_GRAPHS = frozenset({'batch_parallel', 'replicate', 'rewrite', 'shard'})


def findings_of(files: Sequence[ScannedFile], needs_tf1: bool) -> Iterator[Finding]:
    """Yields I311 for each emulated construct of files, and E104 for each that is refused.

    Args:
      files: of one program.
      needs_tf1: whether it runs with `--tf1`, which switches eager execution off.
    """
    for fact in (fact for file in files for fact in file.facts):
        sentence = REFUSED.get(fact.kind) or SENTENCES.get(fact.kind)
        if sentence is not None:
            if fact.kind in _IN_GRAPHS and not needs_tf1:
                sentence += _NEEDS_GRAPH
            yield Finding('E104' if fact.kind in REFUSED else 'I311', fact.place,
                          fact.values['path'], fact.values['written'], sentence)
