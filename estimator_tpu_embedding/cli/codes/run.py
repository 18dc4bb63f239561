"""The codes of a run: the process, its input, numbers that are not finite, missing features."""

ENTRIES = {
    'E001': ('Keras 3 is in place',
             'Estimators and TF1 layers need Keras 2. TensorFlow chooses its Keras at the '
             'first import, and has chosen Keras 3.',
             'Use etpe run, call install() before the first import of TensorFlow, or set '
             'TF_USE_LEGACY_KERAS=1.'),
    'E002': ('package missing',
             'Training needs packages that are not installed.',
             'Install the packages that the message names; the extra "cpu" of this package brings '
             'all of them. They need TensorFlow 2.16 or newer, and pip replaces an older one.'),
    'E003': ('wrong tf-estimator-nightly',
             'Estimator itself comes from one known version of tf-estimator-nightly. Another '
             'version is installed.',
             'Install the version that the message names.'),
    'E004': ('module that is not there',
             'etpe run -m looks for a module in the current folder and on the path of Python. '
             'The module is not there.',
             'Run the command where the package is, or set PYTHONPATH.'),
    'E005': ('file that is no notebook',
             'A file whose name ends with .ipynb must be a notebook with code in Python.',
             'Save the notebook again, or give a script.'),
    'E006': ('native kernels missing',
             'The job asks for the compiled kernels of this package, but this process cannot '
             'use them. The message says why.',
             'Do what the message says. Mostly that is to install a C++17 compiler, and then '
             'this package again, past the wheel that pip kept. Or train with kernels="auto", '
             'which does without them.'),
    'W006': ('stock operations instead of native kernels',
             'This process cannot use the compiled kernels of this package. So operations of '
             'TensorFlow train the tables, with the same results, but several times slower. '
             'The message says why.',
             'Do what the message says. Mostly that is to install a C++17 compiler, and then '
             'this package again, past the wheel that pip kept.'),
    'E007': ('too few logical CPU devices',
             'Each replica of a TPUStrategy needs a logical CPU of its own. The first strategy '
             'makes as many as install() asked for, and then their number is fixed.',
             'Call install(hosts=..., cores=...) for the largest system before the first '
             'strategy is made. Set no number of devices yourself.'),
    'W007': ('training without a checkpoint',
             'No number of steps or seconds between checkpoints is set, and no hook of the '
             'script saves. So all training is lost when the process ends.',
             'Set RunConfig(save_checkpoints_steps=...) or save_checkpoints_secs.'),
    'E501': ('id out of range',
             'An id is negative, or not below the vocabulary size of its table.',
             'Clean the data, or raise the vocabulary size, which is num_buckets of a column. '
             'Or set install(ids=...) or RunConfig(id_policy=...).'),
    'E510': ('ids of a wrong type',
             'Ids are int32 or int64 tensors, sparse or ragged tensors. Strings are for '
             'columns with a vocabulary.',
             'Convert the ids in input_fn.'),
    'E511': ('batch of a wrong size',
             'Each core gets params["batch_size"] samples, and every sample number is below '
             'that size.',
             'Batch with params["batch_size"] and drop_remainder=True.'),
    'E512': ('several ids without a combiner',
             'A table with combiner None takes one id per sample.',
             'Set a combiner, or pass a tensor of shape [batch].'),
    'E513': ('feature missing',
             'input_fn must return a dict with a key for every feature of the embedding spec. '
             'A key is missing.',
             'Add the key, or drop the column.'),
    'E514': ('elements of a wrong form',
             'A dataset yields features, or features and labels.',
             'Return one of these from input_fn.'),
    'E515': ('sparse feature that nobody looks up',
             'Only embedding columns can take a sparse feature to a core. No column of the '
             'spec takes this one.',
             'Add its column to the spec, or make the feature dense in input_fn.'),
    'E516': ('sequence of a wrong rank',
             'The ids of a sequence have the dimensions samples and places. A third dimension '
             'is for several ids at one place.',
             'Reshape the ids in input_fn.'),
    'E517': ('weights of a wrong type',
             'Weights are numbers. They come in a SparseTensor for sparse ids, and in a '
             'RaggedTensor for ragged ids.',
             'Pass both with the same indices.'),
    'E518': ('weights that do not fit',
             'Every id has one finite weight, at the same place.',
             'Make both from the same data, and look for divisions by 0.'),
    'E519': ('result of a computation',
             'inference_on_tpu takes a function that returns a tensor, or a list or tuple of '
             'tensors, as on a TPU.',
             'Return the values of the dict.'),
    'E520': ('input pipeline that failed',
             'The dataset of an input_fn raised an error. Its text comes first, and notes '
             'below it name host, batch, step and input_fn. The last checkpoint is whole.',
             'Correct the error, and start again: training goes on from the last checkpoint.'),
    'E521': ('end of input',
             'The data has ended. Training ends there, as on the TPU.',
             'Repeat the dataset to train longer.'),
    'E522': ('input that does not come',
             'The input pipeline gave nothing until the deadline. The message says what each '
             'thread does.',
             'Look at the pipeline, or set RunConfig(input_deadline_secs=...).'),
    'E523': ('prediction that is not per sample',
             'Batches of a prediction are filled up to their full size. So a prediction must '
             'have a row per sample, to be cut to the real samples.',
             'Return rows, or give only full batches to all cores.'),
    'E524': ('prediction that lost its session',
             'The prediction lost its session. Its input would begin again, and some rows '
             'would come twice.',
             'Predict again. The log says what was lost.'),
    'E525': ('sparse or ragged tensors that are fetched to a TPU',
             'A TPUStrategy can fetch only dense tensors. Features for TPUEmbedding are '
             'enqueued from the host anyway.',
             'Pass tf.distribute.InputOptions(experimental_fetch_to_device=False).'),
    'W525': ('prediction without rows',
             'The input ended before its first batch. A dataset that is batched with '
             'drop_remainder=True gives whole batches only.',
             'Batch without drop_remainder, or predict with a smaller predict_batch_size.'),
    'E526': ('end of a queue or iterator in the model',
             'A queue or an iterator that model_fn made has ended. The data of input_fn has '
             'not.',
             'Take data from input_fn, or repeat the iterator.'),
    'E537': ('forked process',
             'A fork copies a process without the threads of TensorFlow. So TensorFlow would '
             'wait for ever in the copy.',
             'Start processes with subprocess, or with the method "spawn" of multiprocessing. '
             'Or fork before TensorFlow runs anything, or train in the parent.'),
    'W531': ('training outside of the main thread',
             'Python has signals in the main thread only. So SIGTERM ends the process without '
             'a last checkpoint, and Ctrl-C does not end the training.',
             'Train in the main thread if that matters.'),
    'W532': ('fork beside TensorFlow',
             'A process in which TensorFlow runs was forked. The copy may load data without '
             'TensorFlow. With TensorFlow it may wait for ever.',
             'Start such processes with the method "spawn" of multiprocessing.'),
    'E801': ('gradients that are not finite',
             'The gradients of a table are NaN or infinite. Nothing of that step was written, '
             'and the newest checkpoint is older.',
             'Look for a division or logarithm of 0, lower the learning rate, or clip the '
             'gradients. With RunConfig(nonfinite_gradients="skip") a TPUEstimator goes on '
             'without such steps.'),
    'E802': ('sessions that are lost',
             'After an Aborted or Unavailable error a run goes on from its checkpoint. It ends '
             'if several sessions are lost without a step between them.',
             'The log says what was lost: perhaps a file system, or a hook.'),
    'E803': ('loss that is not finite',
             'The loss is NaN or infinite. No checkpoint holds a result of it.',
             'Look for a division or logarithm of 0, or lower the learning rate.'),
    'E804': ('weights that are not finite',
             'A variable of the model is NaN or infinite after a loop of steps. No checkpoint '
             'holds it.',
             'Look for a division or logarithm of 0, or lower the learning rate.'),
    'E805': ('too many steps skipped',
             'RunConfig(nonfinite_gradients="skip") goes on without steps whose gradients are '
             'not finite. It ends the training if nearly all steps are such.',
             'Start again from an older checkpoint, with a lower learning rate.'),
    'W806': ('summaries that cannot be written',
             'The disk with the event files is full, or has failed. Further summaries are '
             'dropped, and training goes on.',
             'Make room on the disk. The next run writes a new event file.'),
    'W801': ('step that changed no table',
             'Gradients of a table were NaN or infinite. With '
             'RunConfig(nonfinite_gradients="skip") such a step changes no table.',
             'If there are many, look for a division or logarithm of 0.'),
    'E901': ('weights on the tensor core',
             'A column for the tensor core has weights. The original fails for them too.',
             'Do what the message proposes.'),
    'E907': ('setting of TPUConfig, RunConfig or TF_CONFIG',
             'The setting is not supported, or not in this form.',
             'Do what the message proposes.'),
    'E913': ('remote directory',
             'Checkpoints and profiles of ids can be written only to local directories.',
             'Copy the results when the job has ended.'),
    'E914': ('distribution strategy of a TPUEstimator',
             'With use_tpu=True the cores of the emulated system are the replicas. Strategies '
             'are for plain Estimators.',
             'Leave the strategy out.'),
    'E915': ('export for the TPU alone',
             'Only graphs for the CPU can be written.',
             'Leave export_to_cpu out.'),
    'E918': ('optimizer without a published formula',
             'The proto names this optimizer, but its formula is documented nowhere. inspect, '
             'size and diff show what the config says of it.',
             'Train with an optimizer that the message lists.'),
    'E916': ("optimizer of one's own",
             'A table is trained by one of the optimizers of the hardware. A subclass of their '
             'parameters brings no update rule.',
             'Use one of the ten classes.'),
    'E917': ('operations without a graph',
             'The raw TPUEmbedding and replicas of a computation are of TF1, so they need a '
             'graph.',
             'Disable v2 behaviour, or build in a tf.Graph.'),
    'E920': ('infeed queue',
             'Replicas of a computation get tensors, not an infeed queue.',
             'Use the inputs argument of tf.tpu.shard.'),
    'E921': ('eager step of a TPUStrategy',
             'strategy.run takes a tf.function, or is called inside one, as on a TPU.',
             'Decorate the function, or the caller of strategy.run.'),
    'E922': ('replica of several cores',
             'The emulated TPUStrategy runs each replica on one core, and does not split a '
             'model.',
             'Build the device assignment without computation_shape, or leave it out.'),
    'E923': ('dataset for each replica',
             'A TPUStrategy has one dataset per host.',
             'Leave experimental_replication_mode out.'),
    'E924': ('TPUEmbeddingV2',
             'TPUEmbeddingV2 is for TPUs with SparseCores. The emulated TPU is an earlier '
             'kind, whose tables TPUEmbedding holds.',
             'Use TPUEmbedding.'),
    'E925': ('infeed or outfeed',
             'The emulated cores are part of one graph. So there are no queues between a host '
             'and its cores.',
             'Give tensors as inputs of tf.tpu.shard, and fetch its results step by step.'),
    'E926': ('training loop over several cores',
             'Replicas meet to sum gradients and to update tables. They cannot meet within a '
             'loop of the graph.',
             'Loop in Python, with one session.run per step, or use one core.'),
    'E927': ('names of slots',
             'Each slot of the optimizer that trains a table is a variable with its own name.',
             'Give the named tuple of that optimizer, with all its fields.'),
    'E928': ('saver that a scaffold changes',
             'The saver of this package restores tables and commits checkpoints, and uses the '
             'saver of the model. A finalize that sets another saver would bypass it.',
             'Give the saver to the constructor of the scaffold.'),
    'W930': ('session at the port of a TPU',
             'The address does not belong to an emulated TPU. So the session connects to it, '
             'and waits until somebody answers.',
             'Open the session at the master() of a TPUClusterResolver, or at "".'),
    'E930': ('part of the original runner',
             'The name exists, so that a script can import it. It has no meaning without a TPU.',
             'Do what the message proposes.'),
    'E938': ('model of Keras 3',
             'Estimators are made of models of Keras 2, which is the package tf_keras today.',
             'Import tf_keras, or set TF_USE_LEGACY_KERAS=1.'),
    'E919': ('ids for a vocabulary, without the engine',
             'An exported graph, or evaluation on the CPU, maps words by the vocabulary of the '
             'column. Only the engine takes ids as they are.',
             'Give the words.'),
}
