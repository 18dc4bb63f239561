"""The codes of inputs from which no config can be read."""

ENTRIES = {
    'E480': ('file that cannot be read', 'It is missing, no regular file, or not permitted.',
             'Check the path; for a pipe use - and standard input.'),
    'E481': ('file too large', 'A config is small; more is a mistake or an attack.', 'Name the '
             'file of the config itself.'),
    'E482': ('nothing in it', 'The input is empty, or a message without a field.', 'Look at '
             'what wrote it.'),
    'E483': ('text that is no config', 'It does not parse as TPUEmbeddingConfiguration.',
             'Correct the line that the message names.'),
    'E484': ('binary that is no config', 'It is neither a config nor a graph.', 'Name one of '
             'what the message accepts.'),
    'E485': ('word that is no config', 'It is neither a field nor base64 of a config.', 'Copy '
             'it whole.'),
    'E486': ('text that is not UTF-8', 'Text protos are UTF-8.', 'Save it as UTF-8.'),
    'E487': ('too many parts', 'It has more tables, features or configs than any job, all '
             'configs of a graph counted together, or an input_shape of more than 8 numbers.',
             'Look at what wrote it.'),
    'E488': ('graph without a config', 'No node carries an embedding config.', 'Use the graph '
             'of a training job.'),
    'E489': ('damaged config in a graph', 'A node carries bytes that are no config.', 'Use '
             'another copy of the graph.'),
    'E491': ('directory or checkpoint without a config', 'There is no manifest, and no graph '
             'with a config.', 'Name a model_dir or a SavedModel.'),
    'E492': ('py: input that gives no config', 'py:module:object must be importable and give a '
             'config, its bytes or a Plan; a function must not raise.',
             'Correct the name, or the function if it was called.'),
    'E493': ('profiles that cannot be read', 'A directory given as --stats, or a file *.profile '
             'in it, is missing, damaged, too large or of a newer version.',
             'Name the profile_data_directory of a job; remove damaged files.'),
}
