"""Codes of the process, the data, numbers, and what is missing."""

ENTRIES = {
    'E001': ('Keras 3 is in place', 'Estimators and TF1 layers need Keras 2, and TensorFlow '
             'chooses while it is first imported.', 'Use etpe run, call install() before the '
             'first import of TensorFlow, or set TF_USE_LEGACY_KERAS=1.'),
    'E002': ('package missing', 'Training needs packages that are not installed.',
             'Install what the message names.'),
    'E003': ('wrong tf-estimator-nightly', 'Estimator itself comes from one known version of '
             'that package.', 'Install the version that the message names.'),
    'E004': ('module that is not there', 'etpe run -m looks for a module in the current folder and '
             'where Python looks.', 'Run it where the package is, or set PYTHONPATH.'),
    'E005': ('file that is no notebook', 'A name that ends with .ipynb must be a notebook whose '
             'code is Python.', 'Save it again, or give a script.'),
    'E006': ('native kernels missing', 'The job asks for the compiled kernels of this package, and '
             'they cannot be used in this process; the message says why.', 'Do what the '
             'message says, which is mostly to install a C++17 compiler and then this package '
             'again, past the wheel that pip kept, or train with kernels="auto", which does '
             'without them.'),
    'W006': ('stock operations instead of native kernels', 'The compiled kernels of this package '
             'cannot be used in this process, so tables are trained with the operations of '
             'TensorFlow, with the same results in several times the time; the message says why.',
             'Do what the message says, which is mostly to install a C++17 compiler and then this '
             'package again, past the wheel that pip kept.'),
    'E007': ('too few logical CPU devices', 'Each replica of a TPUStrategy has a logical CPU '
             'of its own. The first strategy makes as many as install() was told of, and then '
             'their number is fixed.', 'Call install(hosts=..., cores=...) for the largest '
             'system before the first strategy is made, and set no number of devices.'),
    'W007': ('training without a checkpoint', 'Neither steps nor seconds between checkpoints are '
             'set, and no hook of the script saves, so what is trained is gone with the process.',
             'Set RunConfig(save_checkpoints_steps=...) or save_checkpoints_secs.'),
    'E501': ('id out of range', 'An id is negative or not below the vocabulary size of its '
             'table.', 'Clean the data, raise the vocabulary size, which is num_buckets of '
             'a column, or set install(ids=...) or RunConfig(id_policy=...).'),
    'E510': ('ids of a wrong type', 'Ids are int32 or int64 tensors, sparse or ragged tensors; '
             'strings only where the column has a vocabulary.', 'Convert them in input_fn.'),
    'E511': ('batch of a wrong size', 'Each core gets params["batch_size"] samples, and sample '
             'numbers are below it.', 'Batch with params["batch_size"], drop_remainder=True.'),
    'E512': ('several ids without a combiner', 'A table with combiner None takes one id per '
             'sample.', 'Set a combiner, or pass a tensor of shape [batch].'),
    'E513': ('feature missing', 'input_fn returns a dict with a key for every feature of the '
             'embedding spec.', 'Add the key, or drop the column.'),
    'E514': ('elements of a wrong form', 'A dataset yields features, or features and labels.',
             'Return one of these from input_fn.'),
    'E515': ('sparse feature that nobody looks up', 'Only embedding columns take sparse '
             'features to a core.', 'Add its column to the spec, or make it dense in input_fn.'),
    'E516': ('sequence of a wrong rank', 'The ids of a sequence have the dimensions samples and '
             'places, and a third where a place has several ids.', 'Reshape them in input_fn.'),
    'E517': ('weights of a wrong type', 'Weights are numbers in a SparseTensor or RaggedTensor, '
             'beside ids in one.', 'Pass both with the same indices.'),
    'E518': ('weights that do not fit', 'Every id has one finite weight, at the same place.',
             'Make both from the same data, and look for divisions by 0.'),
    'E519': ('result of a computation', 'inference_on_tpu takes a function that returns a tensor, '
             'or a list or tuple of tensors, as on a TPU.', 'Return the values of the dict.'),
    'E520': ('input pipeline that failed', 'The dataset of an input_fn raised an error, whose text '
             'comes first; notes below it name host, batch, step and input_fn. The last '
             'checkpoint is whole.', 'Mend what the text says; training goes on from there.'),
    'E521': ('end of input', 'The data has ended. Training ends there as it did on the TPU.',
             'Repeat the dataset to train longer.'),
    'E522': ('input that does not come', 'The input pipeline gave nothing until the deadline; '
             'what each thread does is in the message.',
             'Look at the pipeline, or set RunConfig(input_deadline_secs=...).'),
    'E523': ('prediction that is not per sample', 'The batches of a prediction are filled up, so '
             'only predictions with a row per sample can be cut to the samples that there are.',
             'Return rows, or give only full batches to all cores.'),
    'E524': ('prediction that lost its session', 'Its input would begin again, and rows that were '
             'given would come twice.', 'Predict again; what was lost is in the log.'),
    'E525': ('sparse or ragged tensors that are fetched to a TPU', 'A TPUStrategy can fetch dense '
             'tensors only; features for TPUEmbedding are enqueued from the host anyway.',
             'Pass tf.distribute.InputOptions(experimental_fetch_to_device=False).'),
    'E526': ('end of something in the model', 'A queue or an iterator that model_fn made has '
             'ended, and not the data of input_fn.', 'Draw from input_fn, or repeat it.'),
    'E537': ('forked process', 'Fork copies a process without the threads of TensorFlow, so '
             'whatever is run by it would wait for ever.', 'Start processes with the method '
             '"spawn" of multiprocessing or with subprocess, fork before TensorFlow has run '
             'anything, or train in the parent.'),
    'W531': ('training outside of the main thread', 'Python has signals in the main thread only, '
             'so SIGTERM ends the process without a last checkpoint, and Ctrl-C does not end the '
             'training.', 'Train in the main thread if that matters.'),
    'W532': ('fork beside TensorFlow', 'A process was forked in which TensorFlow runs. Loaders of '
             'data that use no TensorFlow work; what uses it there may wait for ever.',
             'Start such processes with the method "spawn" of multiprocessing.'),
    'E801': ('gradients that are not finite', 'The gradients of a table are NaN or infinite; '
             'nothing of that step was written, and the newest checkpoint is older.',
             'Look for a division or logarithm of 0; lower the learning rate; clip. A '
             'TPUEstimator goes on without such steps by RunConfig(nonfinite_gradients="skip").'),
    'E802': ('sessions that are lost', 'After an Aborted or Unavailable error a run goes on from '
             'its checkpoint, but not where no step is made between several of them.',
             'Look into the log for what was lost: perhaps a file system, or a hook.'),
    'E803': ('loss that is not finite', 'It is NaN or infinite, and no checkpoint holds what came '
             'of it.', 'Look for a division or logarithm of 0; lower the learning rate.'),
    'E804': ('weights that are not finite', 'A variable of the model is NaN or infinite after a '
             'loop of steps, and no checkpoint holds it.',
             'Look for a division or logarithm of 0; lower the learning rate.'),
    'E805': ('too many steps skipped', 'RunConfig(nonfinite_gradients="skip") goes on without '
             'steps whose gradients are not finite, but not when nearly all are.',
             'Start again from an older checkpoint, with a lower learning rate.'),
    'W806': ('summaries that cannot be written', 'The disk with the event files is full or '
             'failed; they are dropped from there on, and all else goes on.',
             'Make room; the next run writes a new event file.'),
    'W801': ('step that changed no table', 'Gradients of a table were NaN or infinite, and '
             'RunConfig(nonfinite_gradients="skip") keeps all tables as they are in such a step.',
             'Where they are many, look for a division or logarithm of 0.'),
    'E901': ('weights on the tensor core', 'A column for the tensor core has weights, which the '
             'original fails for too.', 'Do what the message proposes.'),
    'E907': ('setting of TPUConfig, RunConfig or TF_CONFIG', 'It is not supported, or not in this '
             'form.', 'Do what the message proposes.'),
    'E913': ('remote directory', 'Checkpoints and profiles of ids are written to local '
             'directories only.', 'Copy the results when the job has ended.'),
    'E914': ('distribution strategy of a TPUEstimator', 'With use_tpu=True the cores of the '
             'emulated system are the replicas. Strategies are for plain Estimators.',
             'Leave it out.'),
    'E915': ('export for the TPU alone', 'Only graphs for the CPU can be written.', 'Leave '
             'export_to_cpu out.'),
    'E918': ('optimizer without a published formula', 'The proto names it, but what it computes '
             'is documented nowhere; inspect, size and diff show what the config says of it.',
             'Train with one that the message lists.'),
    'E916': ('optimizer of one\'s own', 'A table is trained by one of the optimizers that the '
             'hardware has; a subclass of its parameters brings no rule.',
             'Use one of the ten classes.'),
    'E917': ('operations without a graph', 'The raw TPUEmbedding and replicas of a computation '
             'are of TF1: they need a graph.', 'Disable v2 behaviour, or build in a tf.Graph.'),
    'E920': ('infeed queue', 'Replicas of a computation are given tensors.',
             'Use the inputs argument of tf.tpu.shard.'),
    'E921': ('eager step of a TPUStrategy', 'strategy.run takes a tf.function, or is called inside '
             'one, as on a TPU.', 'Decorate the function, or that which calls strategy.run.'),
    'E922': ('replica of several cores', 'The emulated TPUStrategy runs each replica on one core '
             'and does not split a model.', 'Build the device assignment without '
             'computation_shape, or leave it out.'),
    'E923': ('dataset for each replica', 'A TPUStrategy has a dataset for each host.',
             'Leave experimental_replication_mode out.'),
    'E924': ('TPUEmbeddingV2', 'It is for TPUs with SparseCores. The emulated TPU is one of an '
             'earlier kind, whose tables TPUEmbedding holds.', 'Use TPUEmbedding.'),
    'E925': ('infeed or outfeed', 'The emulated cores are part of one graph: there are no queues '
             'between a host and its cores.', 'Give tensors as inputs of tf.tpu.shard, and fetch '
             'what it returns, step by step.'),
    'E926': ('training loop over several cores', 'Replicas meet to sum gradients and to update '
             'tables, which they cannot do within a loop of the graph.',
             'Loop in Python, with one session.run per step, or use one core.'),
    'E927': ('names of slots', 'Each slot of the optimizer that trains a table is a variable with '
             'a name of its own.', 'Give the named tuple of that optimizer, with all its fields.'),
    'E928': ('saver that a scaffold changes', 'What restores tables and commits checkpoints is a '
             'saver around that of the model; a finalize that sets another would bypass it.',
             'Give the saver to the constructor of the scaffold.'),
    'W930': ('session at the port of a TPU', 'Nobody named that address as a TPU\'s before, so the '
             'session asks it, and waits until somebody answers.', 'Open it at the master() of a '
             'TPUClusterResolver, or at "".'),
    'E930': ('part of the original runner', 'The name is there, so that a script that imports it '
             'runs, but it has no meaning without a TPU.', 'Do what the message proposes.'),
    'E919': ('ids for a vocabulary, without the engine', 'An exported graph, or evaluation on the '
             'CPU, maps words by the vocabulary of the column, the engine takes ids as they are.',
             'Give it the words.'),
}
