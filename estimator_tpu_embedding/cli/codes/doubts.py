"""W4xx: configs that work and may not be meant. The thresholds are those of `cli/advice.py`."""

ENTRIES = {
    'W410': ('padding wastes memory',
             'The hardware holds rows of a multiple of 8 floats. Said when more than 25 % of a '
             'table\'s memory, slots counted, is padding: widths 1 to 5, 9 to 11 and '
             '17.',
             'Use a width that is a multiple of 8; a width-1 table may be kept if it is small.'),
    'W411': ('no more rows than hosts',
             'Every host holds at most one row. TensorFlow raises vocabulary_size to the number '
             'of hosts, so rows may be there that no id has.',
             'Look up so small a vocabulary by a dense one-hot layer, or share a table.'),
    'W412': ('names that differ only in case', 'TensorFlow tells them apart; people, and file '
             'systems that ignore case, do not.', 'Rename one of the tables.'),
    'W413': ('tables do not fit',
             'Rows and slots, padded, need more memory than the named TPU has. The model and its '
             'activations need some too.',
             'Use a larger slice, fewer rows, a smaller width or an optimizer with fewer slots.'),
    'W420': ('learning rate 0', 'The constant learning rate of this table is 0: its rows never '
             'change. That is legal and means a frozen table.',
             'Set a rate, unless the table is meant to be frozen.'),
    'W422': ('nearly every table has its own learning-rate tag',
             'Each distinct function object is a tag, and tables with different tags cannot be '
             'fused. Said for 3 tags or more that have fewer than 2 tables each on average: '
             'typical of a fresh functools.partial or lambda per table.',
             'Make the function once and pass the same object to every table.'),
    'W423': ('tags of learning rates with a gap',
             'Tags are 0, 1, ... without gaps; the hardware refuses a config with a gap.',
             'Number them anew.'),
    'W424': ('many learning-rate functions of the same code', 'Rates are told apart by function '
             'object, so a fresh lambda or partial per table makes as many tags as tables, and '
             'tables with different tags cannot be fused. Said when a job begins; a config shows '
             'only the tags (W422).', 'Make the function once, and give it to every table.'),
    'W425': ('gradients are not accumulated',
             'A row is updated once for each core that looks it up in a step, beginning with the '
             'core on which it resides (its id modulo the number of cores). So results, weight '
             'decay among them, depend on the number of cores.',
             'Leave use_gradient_accumulation at True.'),
    'W430': ('initializer that is a class',
             'TensorFlow 1 calls a class without arguments, so that is done here too; mostly the '
             'brackets were forgotten, and with them the arguments.',
             'Call the class: tf.truncated_normal_initializer(stddev=0.1).'),
    'W426': ('flag of weight decay without a factor',
             'multiply_weight_decay_factor_by_learning_rate is set and weight_decay_factor is '
             'not, so nothing decays.',
             'Set weight_decay_factor, or drop the flag.'),
    'W427': ('non-lazy Adam on a large table',
             'Every row is read and written at every step, looked up or not. Said for tables of '
             '1,000,000 rows or more.',
             'Set lazy_adam=True unless the decay of untouched moments is wanted.'),
    'W428': ('bounds that exclude 0',
             'No element of the gradient (or weight) can be 0: both bounds lie on one side of '
             'it. Rows drift in one direction.',
             'Set bounds with 0 between them.'),
    'W429': ('FTRL on a table of several columns',
             'FTRL computes rows from its accumulators alone, so the first update erases random '
             'initial embeddings. That suits tables of width 1 that start at 0.',
             'Use another optimizer, or initialize with zeros.'),
    'W440': ('div on several hosts with a large vocabulary',
             'div gives each host a contiguous range of ids. Where new ids get the highest '
             'numbers, what is looked up most is on one host. Said for div on 2 hosts or more '
             'with a table of 1,000,000 rows or more.',
             'See etpe plan for how many hosts share the newest ids. mod spreads them; its '
             'checkpoints are bound to the number of hosts and cannot be exported. Or hash ids.'),
    'W441': ('doubtful profile_data_directory',
             'It has a part "..", a "~" or "$" that nobody expands, the scheme of a URL, or '
             'control characters, so it may lead elsewhere than to a local directory that is '
             'meant. This version does not train a job with such a directory.',
             'Leave it out, or give the plain path of a directory.'),
    'W461': ('clipping_limit', 'It was never read by TensorFlow, so it clips nothing.',
             'Set clip_weight_min and clip_weight_max of the optimization_parameters.'),
    'W462': ('setting without effect', 'input_partition_dims says how the tensors of one replica '
             'are spread over its cores, which share one memory here; '
             'initial_infeed_sleep_secs lets input wait for a compiler, and none runs here; '
             'variables TF_TPU_... and TPU_SPLIT_COMPILE_AND_EXECUTE direct workers that do not '
             'exist here.', 'Nothing: the numbers are the same.'),
    'W474': ('saving_listeners of a TrainSpec', 'Where a strategy runs over the tasks of a '
             'cluster, train_and_evaluate calls its hooks alone, as the original does.',
             'Use hooks.'),
}
