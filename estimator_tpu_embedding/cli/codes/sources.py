"""The codes of `etpe migrate config`: E67x."""

from __future__ import annotations

ENTRIES: dict[str, tuple[str, str, str]] = {
    'E671': ('option without a counterpart',
             'The job has an option that the other API lacks, such as the partition strategy mod '
             'in TF2. The new source has a comment in its place. With --strict it is an error.',
             'Follow the advice of the message. Then leave --strict out.'),
    'E672': ('optimizer without a counterpart',
             'TPUEmbedding of TF2 has SGD, Adagrad, AdagradMomentum, FTRL and Adam. The layer of '
             'TFRS has no AdagradMomentum. TPUEstimator has ten optimizers. A table with another '
             'one gets none in the new source, and a comment with its numbers.',
             'Choose an optimizer for the table. Its rows can be migrated without their slots.'),
    'E673': ('object that cannot be written as source',
             'Functions of a program cannot be copied: learning rates that depend on the step, '
             'multipliers of gradients, and initializers of other libraries. The new source has '
             'a function that raises an error, or a comment.',
             'Write the function, or import it from the program of the job.'),
    'E674': ('declaration that does not fill a config',
             'A config holds the batch size and the number of cores. An EmbeddingConfigSpec and '
             'nested FeatureConfigs do not have them.',
             'Give --batch-size, --hosts and --cores. Or write Python source instead.'),
    'E675': ('object that declares no embedding',
             'etpe migrate config takes an EmbeddingConfigSpec, its arguments in a dict, a '
             'TPUEmbedding of either API, FeatureConfigs, or a pair of FeatureConfigs and their '
             'optimizer. It also takes configs, and functions that return one of these.',
             'Name such an object, or a function without arguments that returns one.'),
    'E676': ('several training configs',
             'The input has several configs for training, and they differ. Only one of them can '
             'become source.',
             'Save the one that you mean into a file, and name that file.'),
    'E677': ('checkpoint without a config',
             'The checkpoint has tables, but neither its manifest nor its graph holds the config '
             'of the job.',
             'Name another checkpoint of the job, or its EmbeddingConfigSpec by py:module:object.'),
    'E678': ('output that exists, or cannot be written',
             'etpe migrate config replaces no file.',
             'Name a new file in a directory that you may write.'),
    'E679': ('sizes that the input states',
             'A config, and an embedding that is built, have a batch size and a number of '
             'cores. --batch-size is for inputs that do not say them.',
             'Leave --batch-size out. The new job may have another size.'),
}
