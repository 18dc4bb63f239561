"""The codes E1xx, W2xx and I3xx: what `etpe doctor` says about code that nobody has run.

`examples.py` has a line of code before and after the remedy for each of them.
"""

ENTRIES = {
    'E101': ('TensorFlow name that is gone',
             'The installed TensorFlow lacks the name, and nothing restores it. The finding says '
             'why and what to use instead, if that is known.',
             'Use the successor that the finding names. A misspelt name gets the nearest one.'),
    'E102': ('private TensorFlow name that has moved',
             'Names below tensorflow.python and tensorflow.core are private. TensorFlow has moved '
             'this one to another module.',
             'Import it from where the finding says that it is now. Better, use a public name.'),
    'E103': ('name of tf.contrib that is not restored',
             'TensorFlow 2 has no tf.contrib. With --contrib, etpe run restores the part that '
             'jobs for TPUs use. This name is not in that part.',
             'Use the replacement that the finding names.'),
    'E104': ('name that is refused',
             'The name can be imported, so that scripts which never use it run. It raises an '
             'error when it is used, such as E925 or E930.',
             'Do as the finding says. Delete the use if the program never reaches it.'),
    'E105': ('name that contradicts the flags',
             'The program needs --tf1 for other names. With it, this name is not there; without '
             'it, those names are not.',
             'Use the name of TensorFlow 1 here too. A name of TensorFlow 2 can be imported from '
             'tensorflow.compat.v2.'),
    'E111': ('module whose package is missing',
             'The program imports a module that no installed package has.',
             'Install the package that the finding names. If it names none, ask the author of the '
             'code.'),
    'E112': ('module of the project that is not there',
             'The program imports a module, or a name of one, from its own project. No file of '
             'the project has it.',
             'Add the missing file, or correct the import. A generated file must be made first.'),
    'E113': ('name that an installed library lacks',
             'The module is installed, but this version of it has no such name.',
             'Install the version that has it, or use what this version has.'),
    'E121': ('NumPy name that is gone',
             'NumPy has removed the name, and etpe run does not restore it. An example is '
             'np.in1d.',
             'Use the successor. etpe doctor --fix writes it where there is exactly one.'),
    'E122': ('Python name that is gone',
             'A module of Python, or Python itself, no longer has the name, and etpe run does '
             'not restore it. Examples are string.letters and xrange.',
             'Use the successor. etpe doctor --fix writes it where there is exactly one.'),
    'E123': ('module of Python that is gone',
             'The standard library no longer has the module. Examples are cPickle and urllib2.',
             'Import the successor that the finding names.'),
    'E131': ('syntax that Python cannot read',
             'The line does not parse: it is Python 2, or it is wrong. Names in the rest of the '
             'file are unknown.',
             'Correct the line, and run the doctor again. 2to3 and futurize translate Python 2.'),
    'E132': ('file that cannot be read',
             'The file is too large, is no regular file, has bytes that do not fit its encoding, '
             'or may not be opened. Nothing in it was checked.',
             'Correct the file, or leave it out with exclude in the section [etpe] of setup.cfg.'),
    'E133': ('file that is too deep or too long to examine',
             'The code is nested more deeply than the doctor follows, or has more than it '
             'examines. The rest of the file was not checked.',
             'Such files are usually generated. Leave it out with exclude in the section [etpe] '
             'of setup.cfg.'),
    'E134': ('package for rewriting code missing',
             'etpe doctor --fix and --diff change code by means of the package libcst, which '
             'keeps comments and formatting. It is not installed.',
             'pip install ".[doctor]", or pip install libcst.'),
    'E135': ('settings of the doctor that are wrong',
             'The section [etpe] of setup.cfg has a key or a value that the doctor does not know, '
             'or the file cannot be read as settings.',
             'The keys are select and ignore, with codes or their beginnings, and exclude, with '
             'patterns of paths.'),
    'W201': ('name that cannot be resolved',
             'The doctor cannot tell what the name stands for, so nobody knows whether it is '
             'there.',
             'Check it by hand. An import by its plain name can be resolved.'),
    'W202': ('names that are made at run time',
             'The program computes names, as getattr(tf, x), exec and importlib do. The doctor '
             'runs nothing, so it cannot know them.',
             'Check by hand which names can come up.'),
    'W203': ('library that is handed on',
             'A module of a library is an argument, a result, or part of a list, dict or object. '
             'Or its name means another one in turn. The doctor does not follow it there, so it '
             'did not check which names are asked of it.',
             'Check by hand what is asked of it. Import the module where it is used, or hand on '
             'the function that is needed.'),
    'W211': ('tables that a plain optimizer trains',
             'With use_tpu=False the tables are plain variables. The optimizer of model_fn '
             'trains them, and not the optimizer of the embedding config.',
             'Set use_tpu=True: the TPU is emulated. Keep it if that is what the job did.'),
    'W212': ('evaluation or export of mod tables elsewhere',
             'With partition_strategy="mod", rows are stored in another order than with div. A '
             'program that reads the checkpoint without this package mixes up the ids.',
             'Evaluate and export by this package. See etpe docs checkpoints.'),
    'W213': ('one learning rate function per table',
             'Each function object is a learning rate of its own, and tables with different ones '
             'cannot be merged. The code makes a new object for each table.',
             'Make one function, and give it to all tables that share the rate.'),
    'W214': ('optimizer without CrossShardOptimizer',
             'On TPUs each core computes gradients of its own part of the batch. Without '
             'CrossShardOptimizer nothing adds them up for dense variables.',
             'Wrap the optimizer in tf.compat.v1.tpu.CrossShardOptimizer.'),
    'W215': ('batch that the cores cannot share',
             'The global batch is divided evenly among all cores, and it is no multiple of their '
             'number.',
             'Make it a multiple of hosts times cores.'),
    'W216': ('number of shards that does not fit',
             'num_shards of TPUConfig is the number of replicas. Their cores do not fill hosts of '
             'eight cores, or the number contradicts another value in the program.',
             'Set num_shards to hosts times cores, or leave it out.'),
    'W217': ('path in a cloud storage',
             'A path begins with gs://. Reading it needs TensorFlow with support for that file '
             'system and access to it. Checkpoints must be in local directories.',
             'Copy the files, and name local paths.'),
    'W218': ('argument that TensorFlow 2 lacks',
             'The function is there in TensorFlow 1 and 2, and the argument in TensorFlow 1 only. '
             'No other name in the program asks for --tf1.',
             'Run it with --tf1, or write the argument of today.'),
    'W219': ('NumPy name that has another meaning today',
             'NumPy 1 had np.bool and np.long as other names for types of Python. NumPy 2 has '
             'types of its own by these names, and nothing changes them.',
             'Write bool or int if the type of Python is meant.'),
    'W221': ('packages that contradict each other',
             'The installed packages, or their settings, do not fit together.',
             'Install the versions that the finding names.'),
    'I301': ('name that etpe run restores',
             'Plain TensorFlow, NumPy or Python lacks the name. etpe run puts it back without any '
             'flag.',
             'Start the program by etpe run. etpe doctor --fix writes the successor where there is '
             'exactly one.'),
    'I302': ('name that --tf1 restores',
             'The name is of TensorFlow 1. etpe run --tf1 makes "import tensorflow" give it.',
             'Start the program by etpe run --tf1.'),
    'I303': ('name that --contrib restores',
             'The name is of tf.contrib, and is in the part that etpe run --contrib restores.',
             'Start the program by etpe run --contrib.'),
    'I304': ('name of Keras 2',
             'The name is there with Keras 2, and not with Keras 3. etpe run selects Keras 2.',
             'Start the program by etpe run.'),
    'I305': ('missing name that the program expects to miss',
             'The name is not there, and the program goes on without it. It catches the error, or '
             'asks for the version first.',
             'Nothing.'),
    'I311': ('call that is emulated',
             'The call is for TPUs. This package emulates it, in the way that the finding says.',
             'Nothing.')}
