"""The codes of choices that are legal but doubtful: mostly W4xx.

`cli/advice.py` has the thresholds that these texts state.
"""

ENTRIES = {
    'W410': ('padding wastes memory',
             "The hardware pads rows to a multiple of 8 floats. This warning comes if more "
             "than 25 % of a table's memory, slots included, is padding: widths 1 to 5, 9 to "
             "11 and 17.",
             'Use a width that is a multiple of 8. A small table of width 1 may stay as it is.'),
    'W411': ('no more rows than hosts',
             'Every host holds at most one row. TensorFlow raises vocabulary_size to the '
             'number of hosts, so the table may have rows without an id.',
             'Look up so small a vocabulary with a dense one-hot layer, or share a table.'),
    'W412': ('names that differ only in case',
             'Two tables have names that differ only in case. TensorFlow tells them apart, but '
             'people and some file systems do not.',
             'Rename one of the tables.'),
    'W413': ('tables do not fit',
             'Rows and slots, padded, need more memory than the named TPU has. The model and '
             'its activations need memory too.',
             'Use a larger slice, fewer rows, a smaller width or an optimizer with fewer slots.'),
    'W420': ('learning rate 0',
             'The constant learning rate of this table is 0, so its rows never change. That is '
             'legal, and means a frozen table.',
             'Set a rate, unless the table is meant to be frozen.'),
    'W422': ('nearly every table has its own learning-rate tag',
             'Each function object becomes a tag, and tables with different tags cannot be '
             'fused. The usual cause is a new functools.partial or lambda for each table. This '
             'warning comes for 3 tags or more with fewer than 2 tables each on average.',
             'Make the function once, and pass the same object to every table.'),
    'W423': ('tags of learning rates with a gap',
             'Tags are 0, 1, ... without gaps. The hardware refuses a config with a gap.',
             'Number the tags anew.'),
    'W424': ('many learning-rate functions of the same code',
             'Each function object becomes a tag, and tables with different tags cannot be '
             'fused. A new lambda or partial for each table makes as many tags as tables. This '
             'warning comes when a job begins. A config shows only the tags (W422).',
             'Make the function once, and pass the same object to every table.'),
    'W425': ('gradients are not accumulated',
             'Without gradient accumulation, each core that looks up a row updates it '
             'separately. The core with the number id % cores updates first. So results, '
             'weight decay included, depend on the number of cores.',
             'Leave use_gradient_accumulation at True.'),
    'W430': ('initializer that is a class',
             'TensorFlow 1 calls a class without arguments, and this package does the same. '
             'Mostly the brackets were forgotten, and the arguments with them.',
             'Call the class: tf.truncated_normal_initializer(stddev=0.1).'),
    'W431': ('crossed or bucketized column',
             'A TPU looks ids up, but computes no column of others. So the feature of such a '
             'column must come from input_fn, under the name of the column.',
             'Compute it in input_fn, and use categorical_column_with_identity.'),
    'W426': ('flag of weight decay without a factor',
             'multiply_weight_decay_factor_by_learning_rate is set, but weight_decay_factor is '
             'not. So nothing decays.',
             'Set weight_decay_factor, or drop the flag.'),
    'W427': ('non-lazy Adam on a large table',
             'Non-lazy Adam reads and writes every row at every step, even rows that nobody '
             'looked up. This warning comes for tables of 1,000,000 rows or more.',
             'Set lazy_adam=True, unless moments of rows without a look-up should decay too.'),
    'W428': ('bounds that exclude 0',
             'Both bounds of the gradient, or of the weight, lie on the same side of 0. So no '
             'element can be 0, and rows drift in one direction.',
             'Set bounds with 0 between them.'),
    'W429': ('FTRL on a table of several columns',
             'FTRL computes rows from its accumulators alone, so the first update erases '
             'random initial embeddings. FTRL suits tables of width 1 that begin with 0.',
             'Use another optimizer, or initialize with zeros.'),
    'W440': ('div on several hosts with a large vocabulary',
             'div gives each host a contiguous range of ids. If new ids get the highest '
             'numbers, one host holds most of the rows that are looked up. This warning comes '
             'for div on 2 hosts or more with a table of 1,000,000 rows or more.',
             'etpe plan shows how many hosts share the newest ids. Use mod, which spreads '
             'them, or hash the ids. Checkpoints of mod are bound to the number of hosts and '
             'cannot be exported.'),
    'W441': ('doubtful profile_data_directory',
             'The path has a part "..", a "~" or "$", the scheme of a URL, or control '
             'characters. Nobody expands these, so the path may lead to another directory. '
             'This version does not train a job with such a path.',
             'Leave the setting out, or give the plain path of a directory.'),
    'W461': ('clipping_limit',
             'TensorFlow never read clipping_limit, so it clips nothing.',
             'Set clip_weight_min and clip_weight_max of the optimization_parameters.'),
    'W462': ('setting without effect',
             'The setting directs a part of a TPU that does not exist here. '
             'input_partition_dims spreads tensors over cores with separate memories. '
             'initial_infeed_sleep_secs waits for a compiler. Variables such as TF_TPU_... and '
             'TPU_SPLIT_COMPILE_AND_EXECUTE direct workers.',
             'Nothing has to be done: the numbers are the same.'),
    'W474': ('saving_listeners of a TrainSpec',
             'A strategy runs over the tasks of a cluster. Then train_and_evaluate calls only '
             'hooks, as the original does, and ignores saving_listeners.',
             'Use hooks.'),
}
