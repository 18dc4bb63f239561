"""E4xx: what a job or a config declares contradicts itself or a limit."""

ENTRIES = {
    'E401': ('table_id that names no table',
             'A feature_descriptor says by table_id which table_descriptor it looks up in, '
             'counted from 0. This number is negative or too large.',
             'Correct table_id, or add the table that was lost.'),
    'E402': ('no table or no feature',
             'A config needs a table to train and a feature that looks up in it.',
             'Declare at least one embedding column.'),
    'E403': ('illegal name',
             'Names of tables and features become names of variables and parts of file names. '
             'They are not empty, at most 1,000 printable characters long, and have no empty '
             'part, "." or ".." between slashes.',
             'Rename it.'),
    'E404': ('two of one name', 'Two tables or two features have the same name.',
             'Rename one; to look up in one table by two features, share the table.'),
    'E405': ('too many tables or features',
             'There are more than 10,000 tables or 100,000 features. That is a mistake or an '
             'attack, not a job.',
             'Look at what makes the declaration.'),
    'E410': ('illegal topology',
             'There are 1 to 4,096 hosts with 1 to 256 cores each, and every host has the same '
             'number of cores.',
             'Correct num_hosts and num_tensor_cores, --hosts and --cores, or num_shards.'),
    'E411': ('batch that the cores cannot share',
             'The batch sizes given to TPUEstimator are global: each core gets an equal part.',
             'Use a multiple of the number of cores; the message names the nearest two.'),
    'E412': ('illegal vocabulary size',
             'A table has 1 to 2147483647 rows, since ids are 32-bit in the hardware.',
             'Set it to the largest id + 1; hash ids that are larger.'),
    'E413': ('illegal dimension', 'A row has 1 to 65,536 columns.', 'Correct it.'),
    'E414': ('unknown combiner', 'Several ids of a sample become one row by "sum", "mean" or '
             '"sqrtn"; None is for features with one id per sample.', 'Use one of these.'),
    'E415': ('initializer that cannot be called',
             'An initializer is called with the shape of the rows of a host.',
             'Pass an object, such as tf.truncated_normal_initializer(), not a value.'),
    'E416': ('illegal number of steps', 'etpe run --steps and install(steps=...) limit every call '
             'of train() to that many, at least 1.', 'Correct it, or leave it out.'),
    'E417': ('illegal quantization',
             'Looked up rows are rounded to num_buckets values, 2 or more, from lower to upper, '
             'which are finite.', 'Correct the QuantizationConfig of the table.'),
    'E421': ('illegal learning rate',
             'A learning rate is a finite number >= 0; 0 freezes the table.',
             'Correct it; for a rate that depends on the step give learning_rate_fn.'),
    'E422': ('learning_rate_fn that cannot be called',
             'A rate that depends on the step is a function of the global step.',
             'Pass the function, not its result.'),
    'E424': ('learning rate without its function',
             'A config holds only a number, the tag, for a rate that depends on the step. A plan '
             'decoded from it can be read but not trained with.',
             'Train from the declaration, not from the proto.'),
    'E425': ('hyper-parameter out of its range',
             'Each optimizer states the range of its numbers; outside of it the update divides '
             'by 0 or grows without end.',
             'Correct it; the message says the range.'),
    'E426': ('illegal weight decay', 'The factor of weight decay is a finite number >= 0.',
             'Correct it; None is no decay.'),
    'E427': ('illegal bounds', 'Bounds on gradients or weights are finite numbers, and the lower '
             'is not above the upper.', 'Correct them; leave one out for no bound.'),
    'E428': ('non-lazy Adam without accumulation',
             'Adam that moves every row at every step needs the summed gradients.',
             'Leave use_gradient_accumulation at True.'),
    'E429': ('clipping without accumulation',
             'Bounds on gradients apply to the sum over a step, which is not made without '
             'gradient accumulation.',
             'Leave use_gradient_accumulation at True.'),
    'E430': ('table without a feature', 'No feature looks up in this table, so it cannot be '
             'trained.', 'Drop it, or add its feature.'),
    'E431': ('feature of an undefined table', 'A feature names a table that is not declared.',
             'Correct the name; the message says the one most like it.'),
    'E432': ('illegal max_sequence_length',
             'It is 0 for ids that are combined, above 0 for ids that are kept apart.',
             'Give a whole number >= 0.'),
    'E433': ('illegal input_shape',
             'The shape of a feature on one core is [batch] or [batch, length], in TF2 of any rank '
             'from 1 on, each number >= 1.',
             'Correct input_shape, or output_shape.'),
    'E434': ('feature of two tables', 'One key of the features feeds columns of two tables.',
             'Give the second column a copy of the feature under another key.'),
    'E436': ('column that model_fn does not use',
             'The variable of a table is made where model_fn passes its column to a layer.',
             'Pass every column of the spec to DenseFeatures or input_layer, or drop it.'),
    'E437': ('one variable for two tables', 'Two columns led to a variable of the same name.',
             'Rename one, use another scope, or use shared_embedding_columns.'),
    'E438': ('policy for ids out of range', 'It is error, drop, clip or mod, for all features or '
             'by the name of a feature.', 'Correct RunConfig(id_policy=...) or etpe run --ids.'),
    'E439': ('doubtful profile_data_directory', 'It has a part "..", a "~" or "$" that nobody '
             'expands, the scheme of a URL, or control characters, or is no string.',
             'Give the plain path of a directory.'),
    'E440': ('unknown strategy', 'Rows are spread over hosts by "div" or by "mod".',
             'Use one of these.'),
    'E441': ('unknown mode', 'A config is for training or for inference.', 'Set mode.'),
    'E442': ('no optimizer', 'A table that is trained needs an optimizer.',
             'Set optimization_parameters of the spec or of the table.'),
    'E443': ('no optimizer of tables', 'The table names no algorithm, or a program of the user '
             'or an assignment, which the TF1 classes never offered.',
             'Use one that the message lists.'),
    'E451': ('cores sum unequally often', 'A sum over cores needs the part of every core; a '
             'core has left one out.', 'Do not make the structure of the model depend on the '
             'core.'),
    'E452': ('cores make different variables', 'Variables are made once and used by all cores.',
             'Do not make variables or their names depend on the core.'),
    'E453': ('sum of TensorFlow in a model', 'TensorFlow\'s own tf.tpu.cross_replica_sum has no '
             'CPU kernel.', 'Call estimator_tpu_embedding.install() before model_fn runs.'),
    'E456': ('sum over cores within control flow', 'A sum inside of tf.cond, tf.while_loop or '
             'tf.function could wait for ever.', 'Apply the gradients always, times 0 where '
             'they are not to count.'),
    'E457': ('tensor of a batch outside of a step', 'What depends on a batch has a value only '
             'while a step runs.', 'Fetch it from the before_run of a hook.'),
    'E458': ('unknown policy', 'RunConfig(nonfinite_gradients=...) is "error" or "skip".',
             'Use one of the two.'),
    'E459': ('change of a variable within control flow', 'Cores share the variables, which the '
             'first alone changes; within tf.cond, tf.while_loop or tf.function that cannot be '
             'arranged.', 'Change them always, by a value that is 0 where nothing is to change.'),
    'E460': ('name of optimizer state', 'A table is called as the state of another table is, '
             'for example "user/Adagrad".', 'Rename the table.'),
    'E461': ('unknown argument', 'EmbeddingConfigSpec has no such argument.',
             'Use the one that the message proposes.'),
    'E462': ('table larger than the memory', 'Rows and slots of a table are held in the memory of '
             'the process, which its limits, its control group or the machine bound.',
             'Take fewer or narrower rows, an optimizer with fewer slots, or more memory; etpe '
             'size shows what each table takes.'),
    'E463': ('tables larger than the memory', 'Rows and slots of all tables together are held in '
             'the memory of the process, all emulated hosts included.',
             'Take fewer or narrower rows, an optimizer with fewer slots, or more memory; etpe '
             'size shows what each table takes.'),
    'E464': ('look-up before variables', 'The raw TPUEmbedding looks up in variables of the same '
             'graph.', 'Call create_variables_and_ops() before get_activations().'),
    'E465': ('look-up outside of replicas', 'Every core looks up its own part of a batch.',
             'Call get_activations() in the computation of tf.tpu.shard with one shard per core.'),
    'E466': ('gradients without a look-up', 'Gradients belong to the look-up before them in the '
             'same replica, and may be sent once.', 'Call get_activations() before, in training.'),
    'E467': ('no dummy variables', 'Gradients are caught through a dummy variable per table.',
             'Call create_dummy_table_variables() before.'),
    'E468': ('unknown value of a variable', 'The original refuses other values too.',
             'Unset the variable, or use one of the values that the message lists.'),
    'E469': ('unreadable TF_CONFIG', 'The environment variable TF_CONFIG holds an object of JSON '
             'with "cluster", "task" and the like, or is not set.',
             'Correct it, or unset it to run in one process.'),
    'E470': ('content that would be lost', 'The config is readable, but has fields that this '
             'package cannot hold, and it refuses to drop them in silence.',
             'Remove the fields that the message names.'),
    'E472': ('strategy or cluster given twice', 'RunConfig takes strategies by two roads, and a '
             'cluster from TF_CONFIG or from experimental_distribute.', 'Remove one.'),
    'E473': ('strategy over a cluster', 'train and evaluate of an Estimator are for one process; '
             'where a strategy runs over the tasks of a cluster, they cannot be called.',
             'Call tf.estimator.train_and_evaluate.'),
    'E474': ('unknown kernels', 'Tables are executed by "native" kernels, by "stock" operations of '
             'TensorFlow, or, with "auto", by the native ones where they are installed.',
             'Use one of the three.'),
    'E475': ('illegal number of threads', 'Native kernels run on 1 to 1,024 threads.',
             'Correct it, or leave it out to use all cores.'),
    'E476': ('table written beside its engine', 'A variable of a table, or of a slot, was written '
             'while a step of the same session looked up or updated, so its update is lost.',
             'Assign to tables between two steps, in a run of its own.'),
    'E477': ('table variable made by a user', 'With native kernels the variables of tables are '
             'views of their engine, which no variable_creator_scope may replace or make twice.',
             "Build the graph outside of that scope, or choose kernels='stock'."),
    'E495': ('initializer that is a class, in TF2',
             'A TableConfig takes what can be called with a shape. TensorFlow itself '
             'fails for a class, but later.',
             'Call the class: tf.keras.initializers.TruncatedNormal(stddev=0.1).'),
    'E496': ('column that the spec lacks',
             'model_fn passes a TPU embedding column to input_layer or DenseFeatures that is not '
             'in the spec, so it would take ids for rows.',
             'Add it to EmbeddingConfigSpec(feature_columns=...), or take '
             'tf.feature_column.embedding_column, whose table is a variable of the model.'),
    'E497': ('column of another width than that of the spec',
             'model_fn and the spec have columns of one feature whose rows differ in width, or '
             'in the length of sequences.', 'Make the columns once, and pass them to both.'),
    'E498': ('checkpoint options of another class',
             'RunConfig(checkpoint=...) takes the class that says which differences between a '
             'checkpoint and a job are meant.',
             'Pass estimator_tpu_embedding.CheckpointOptions(...).'),
    'E499': ('spec of another class',
             'TPUEstimator(embedding_config_spec=...) takes an EmbeddingConfigSpec, not the '
             'columns themselves.',
             'Give EmbeddingConfigSpec(feature_columns=columns, optimization_parameters=...).'),
    'E478': ('input that does not fit the command',
             'A comparison needs one config on each side, or one checkpoint on each side.',
             'Name the file of one config.'),
}
