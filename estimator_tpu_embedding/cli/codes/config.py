"""The codes of declarations: a job or a config contradicts itself or a limit."""

ENTRIES = {
    'E401': ('table_id that names no table',
             'A feature_descriptor names its table_descriptor by table_id, counted from 0. '
             'This number is negative or too large.',
             'Correct table_id, or add the table that was lost.'),
    'E402': ('no table or no feature',
             'A config needs a table to train, and a feature that looks up in it.',
             'Declare at least one embedding column.'),
    'E403': ('illegal name',
             'Names of tables and features become names of variables and parts of file names. '
             'A name has 1 to 1,000 printable characters. No part between slashes is empty, '
             '"." or "..".',
             'Rename the table or the feature.'),
    'E404': ('two of one name',
             'Two tables, or two features, have the same name.',
             'Rename one. To look up in one table by two features, share the table.'),
    'E405': ('too many tables or features',
             'There are more than 10,000 tables or 100,000 features. No job has so many, so '
             'this is a mistake or an attack.',
             'Look at the code that makes the declaration.'),
    'E410': ('illegal topology',
             'A system has 1 to 4,096 hosts with 1 to 256 cores each. Every host has the same '
             'number of cores.',
             'Correct num_hosts and num_tensor_cores, --hosts and --cores, or num_shards.'),
    'E411': ('batch that the cores cannot share',
             'Batch sizes of a TPUEstimator are global, and each core gets an equal part. This '
             'size is no multiple of the number of cores.',
             'Use a multiple of the number of cores. The message names the nearest two.'),
    'E412': ('illegal vocabulary size',
             'A table has 1 to 2147483647 rows, since ids are 32-bit in the hardware.',
             'Set it to the largest id + 1; hash ids that are larger.'),
    'E413': ('illegal dimension',
             'A row has 1 to 65,536 columns.',
             'Correct the dimension.'),
    'E414': ('unknown combiner',
             'Several ids of a sample become one row by "sum", "mean" or "sqrtn". None is for '
             'features with one id per sample.',
             'Use one of these four.'),
    'E415': ('initializer that cannot be called',
             'This package calls an initializer with the shape of the rows of a host. The '
             'given value cannot be called.',
             'Pass an object, such as tf.truncated_normal_initializer().'),
    'E416': ('illegal number of steps',
             'etpe run --steps and install(steps=...) limit each call of train(). The limit is '
             'a whole number, at least 1.',
             'Correct the number, or leave it out.'),
    'E417': ('illegal quantization',
             'Quantization rounds looked-up rows to num_buckets values from lower to upper. '
             'num_buckets is 2 or more, and both bounds are finite.',
             'Correct the QuantizationConfig of the table.'),
    'E421': ('illegal learning rate',
             'A learning rate is a finite number >= 0. A rate of 0 freezes the table.',
             'Correct the rate. For a rate that depends on the step, give learning_rate_fn.'),
    'E422': ('learning_rate_fn that cannot be called',
             'A rate that depends on the step is a function of the global step. The given '
             'value cannot be called.',
             'Pass the function, not its result.'),
    'E424': ('learning rate without its function',
             'A config holds only a number, the tag, for a rate that depends on the step. So a '
             'plan that was decoded from a config can be read, but not trained.',
             'Train from the declaration, not from the proto.'),
    'E425': ('hyper-parameter out of its range',
             'Each optimizer states the range of its numbers. Outside of the range the update '
             'divides by 0 or grows without end.',
             'Correct the number. The message says the range.'),
    'E426': ('illegal weight decay',
             'The factor of weight decay is a finite number >= 0.',
             'Correct the factor. None is no decay.'),
    'E427': ('illegal bounds',
             'Bounds on gradients or weights are finite numbers. The lower bound is not above '
             'the upper bound.',
             'Correct the bounds. Leave one out for no bound.'),
    'E428': ('non-lazy Adam without accumulation',
             'Non-lazy Adam moves every row at every step. For that it needs the summed '
             'gradients, which only gradient accumulation gives.',
             'Leave use_gradient_accumulation at True.'),
    'E429': ('clipping without accumulation',
             'Bounds on gradients apply to the sum over a step. Without gradient accumulation '
             'there is no such sum.',
             'Leave use_gradient_accumulation at True.'),
    'E430': ('table without a feature',
             'No feature looks up in this table, so it cannot be trained.',
             'Drop the table, or add its feature.'),
    'E431': ('feature of an undefined table',
             'A feature names a table that is not declared.',
             'Correct the name. The message says the most similar one.'),
    'E432': ('illegal max_sequence_length',
             'max_sequence_length is 0 for ids that are combined, and above 0 for ids that '
             'stay separate.',
             'Give a whole number >= 0.'),
    'E433': ('illegal input_shape',
             'The shape of a feature on one core is [batch] or [batch, length]. In TF2 it may '
             'have any rank from 1 on. Each number is >= 1.',
             'Correct input_shape, or output_shape.'),
    'E434': ('feature of two tables',
             'One key of the features feeds columns of two tables.',
             'Give the second column a copy of the feature under another key.'),
    'E436': ('column that model_fn does not use',
             'The variable of a table is made when model_fn passes its column to a layer. '
             'model_fn never passed this column.',
             'Pass every column of the spec to DenseFeatures or input_layer, or drop it.'),
    'E437': ('one variable for two tables',
             'Two columns led to a variable of the same name.',
             'Rename one, use another scope, or use shared_embedding_columns.'),
    'E438': ('policy for ids out of range',
             'The policy is error, drop, clip or mod. It applies to all features, or to each '
             'feature by name.',
             'Correct RunConfig(id_policy=...) or etpe run --ids.'),
    'E439': ('doubtful profile_data_directory',
             'The path is no string, or it has a part "..", a "~" or "$", the scheme of a URL, '
             'or control characters. Nobody expands these, so the path may lead to another '
             'directory.',
             'Give the plain path of a directory.'),
    'E440': ('unknown strategy',
             'Rows are spread over hosts by "div" or by "mod".',
             'Use one of these two.'),
    'E441': ('unknown mode',
             'A config is for training or for inference.',
             'Set mode.'),
    'E442': ('no optimizer',
             'A table that is trained needs an optimizer.',
             'Set optimization_parameters of the spec or of the table.'),
    'E443': ('no optimizer of tables',
             "The table names no optimizer, or it names a user's program or an assignment. The "
             "TF1 classes never offered these.",
             'Use an optimizer that the message lists.'),
    'E451': ('cores sum unequally often',
             'A sum over cores needs the part of every core. One core left a sum out.',
             'Build the same model on every core, whatever the number of the core is.'),
    'E452': ('cores make different variables',
             'Variables are made once, and all cores use them. One core made other variables.',
             'Make the same variables under the same names on every core.'),
    'E453': ('sum of TensorFlow in a model',
             "TensorFlow's own tf.tpu.cross_replica_sum has no CPU kernel.",
             'Call estimator_tpu_embedding.install() before model_fn runs.'),
    'E456': ('sum over cores within control flow',
             'A sum over cores inside of tf.cond, tf.while_loop or tf.function could wait for '
             'ever.',
             'Apply the gradients always. Multiply them by 0 where they are not to count.'),
    'E457': ('tensor of a batch outside of a step',
             'A tensor that depends on a batch has a value only while a step runs.',
             'Fetch it from the before_run of a hook.'),
    'E458': ('unknown policy',
             'RunConfig(nonfinite_gradients=...) is "error" or "skip".',
             'Use one of the two.'),
    'E459': ('change of a variable within control flow',
             'Cores share the variables, and the first core alone changes them. That is not '
             'possible within tf.cond, tf.while_loop or tf.function.',
             'Change the variable always, by 0 where nothing is to change.'),
    'E460': ('name of optimizer state',
             'The name of a table is also the name of another table\'s slot, such as '
             '"user/Adagrad".',
             'Rename the table.'),
    'E461': ('unknown argument',
             'EmbeddingConfigSpec has no such argument.',
             'Use the one that the message proposes.'),
    'E462': ('table larger than the memory',
             'The process holds all rows and slots of a table in memory. The limit of the '
             'process, of its control group or of the machine is lower.',
             'Take fewer or narrower rows, an optimizer with fewer slots, or more memory. etpe '
             'size shows the bytes of each table.'),
    'E463': ('tables larger than the memory',
             'The process holds all rows and slots of all tables in memory, for all emulated '
             'hosts. Together they are larger than the memory.',
             'Take fewer or narrower rows, an optimizer with fewer slots, or more memory. etpe '
             'size shows the bytes of each table.'),
    'E464': ('look-up before variables',
             'The raw TPUEmbedding looks up in variables of the same graph, and these do not '
             'exist yet.',
             'Call create_variables_and_ops() before get_activations().'),
    'E465': ('look-up outside of replicas',
             'Every core looks up its own part of a batch. Outside of a replica there is no '
             'such part.',
             'Call get_activations() in the computation of tf.tpu.shard with one shard per '
             'core.'),
    'E466': ('gradients without a look-up',
             'Gradients belong to the previous look-up in the same replica. They may be sent '
             'once.',
             'Call get_activations() before, in training.'),
    'E467': ('no dummy variables',
             'A dummy variable per table catches its gradients. These variables do not exist '
             'yet.',
             'Call create_dummy_table_variables() before.'),
    'E468': ('unknown value of a variable',
             'The environment variable has a value that the original refuses too.',
             'Unset the variable, or use one of the values that the message lists.'),
    'E469': ('unreadable TF_CONFIG',
             'The environment variable TF_CONFIG holds an object of JSON with members such as '
             '"cluster" and "task". This value is not such an object.',
             'Correct it, or unset it to run in one process.'),
    'E470': ('content that would be lost',
             'The config is readable, but has fields that this package cannot hold. The '
             'package does not drop them in silence.',
             'Remove the fields that the message names.'),
    'E472': ('strategy or cluster given twice',
             'RunConfig takes a strategy from two arguments, and a cluster from TF_CONFIG or '
             'from experimental_distribute. Both of a pair are given.',
             'Remove one.'),
    'E473': ('strategy over a cluster',
             'train and evaluate of an Estimator are for one process. They cannot be called '
             'where a strategy runs over the tasks of a cluster.',
             'Call tf.estimator.train_and_evaluate.'),
    'E474': ('unknown kernels',
             '"native" kernels or "stock" operations of TensorFlow execute the tables. "auto" '
             'takes the native ones where they are installed.',
             'Use one of the three.'),
    'E475': ('illegal number of threads',
             'Native kernels run on 1 to 1,024 threads.',
             'Correct the number, or leave it out to use all cores.'),
    'E476': ('table written beside its engine',
             'Somebody wrote a variable of a table, or of a slot, while a step of the same '
             'session used the table. So an update is lost.',
             'Assign to tables between two steps, in a run of its own.'),
    'E477': ('table variable made by a user',
             'With native kernels the variables of tables are views of memory that the engine '
             'owns. A variable_creator_scope may not replace them or make them twice.',
             "Build the graph outside of that scope, or choose kernels='stock'."),
    'E495': ('initializer that is a class, in TF2',
             'A TableConfig takes an object that can be called with a shape. A class is none, '
             'and TensorFlow itself fails for it later.',
             'Call the class: tf.keras.initializers.TruncatedNormal(stddev=0.1).'),
    'E496': ('column that the spec lacks',
             'model_fn passes a TPU embedding column to input_layer or DenseFeatures, but the '
             'spec does not have it. The layer would take ids for rows.',
             'Add it to EmbeddingConfigSpec(feature_columns=...). Or take '
             'tf.feature_column.embedding_column, whose table is a variable of the model.'),
    'E497': ('column of another width than in the spec',
             'model_fn and the spec have different columns of one feature. Their rows differ '
             'in width, or in the length of sequences.',
             'Make the columns once, and pass them to both.'),
    'E498': ('checkpoint options of another class',
             'RunConfig(checkpoint=...) takes a CheckpointOptions. It says which differences '
             'between a checkpoint and a job are meant.',
             'Pass estimator_tpu_embedding.CheckpointOptions(...).'),
    'E499': ('spec of another class',
             'TPUEstimator(embedding_config_spec=...) takes an EmbeddingConfigSpec, not the '
             'columns themselves.',
             'Give EmbeddingConfigSpec(feature_columns=columns, optimization_parameters=...).'),
    'E478': ('input that does not fit the command',
             'A comparison needs one config on each side, or one checkpoint on each side.',
             'Name the file of one config.'),
}
