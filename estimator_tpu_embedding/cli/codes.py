"""Holds the title of every code, and the page of the documents that treats it.

An error itself holds the rule, what came and the remedy. `tests/cli/codes_test.py` keeps the list
complete: the sources use each code that is here, and no other.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from ..errors import did_you_mean

SEVERITIES = {'E': 'error', 'W': 'warning', 'I': 'information'}


class Entry(NamedTuple):
    """What is known of a code.

    Attributes:
      title: a few words.
      topic: of `etpe docs`.
    """

    title: str
    topic: str


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds `--select` and `--ignore`: tuples of beginnings of codes. Without them all count."""
    parser.add_argument('--select', metavar='CODES', type=_argument, default=('',),
                        help='only these: codes or their beginnings, such as W4,E41')
    parser.add_argument('--ignore', metavar='CODES', type=_argument, default=(),
                        help='all but these')


def _argument(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().upper() for part in text.split(','))
    for prefix in found:
        if not prefix or not any(code.startswith(prefix) for code in ENTRIES):
            raise argparse.ArgumentTypeError(
                f'no code begins with {prefix[:20]!r}.  {did_you_mean(prefix, ENTRIES)}'.rstrip())
    return found


_BY_TOPIC = {
    'checkpoints': '''
E604 shape that differs from the checkpoint
E606 variable missing in the checkpoint
E608 mod without a manifest
E609 mod rows where rows must be in the order of ids
E610 warm start in an unknown order
E611 manifest that cannot be read
E612 no readable checkpoint
E613 checkpoint that cannot be read
E614 manifest of another checkpoint
E615 profile_data_directory that cannot be written
E616 file "checkpoint" that is no file of text
W616 profile set aside
E617 warm start from something that is no checkpoint
W617 profile not written
E618 file that differs from what was saved
W618 file "checkpoint" set aside
E619 pointer to another directory
W619 newer checkpoint in the place of a deleted one
E620 numbers that are not finite, not saved
E621 checkpoint that could not be written
E622 model_dir in use
E623 link in a model_dir
E624 model_dir on another kind of storage
E625 manifest that is not the expected one
E626 illegal checkpoint option
E627 state of an input that is no file
E628 checkpoint that a job deleted
E629 other checkpoint after the deleted one
E630 unknown table in CheckpointOptions
E631 slots of another optimizer
W631 words with other ids than in the checkpoint
E632 table that the job lacks
E633 saver of a scaffold
E641 words with other ids than in the checkpoint, strict
E645 no checkpoint there
E646 numbers that are not finite in a checkpoint
''',
    'cluster': '''
E701 contradiction in the choice of workers
W701 training that uses no workers
E702 malformed address of a worker
E703 the same worker twice
E704 unknown machine
E705 server that other machines could reach
E706 port is taken
E707 worker does not answer
E708 worker of another run
E709 different versions in a cluster
E710 number of hosts and of workers differ
E711 own worker did not start
E712 something else than a worker answers
E713 script without addresses
E714 address of another machine
E715 loopback among other addresses
E721 lost worker
E722 the same failure at the same step
E723 cut connection to a worker
E724 call that takes too long
E732 Python that uses what a host holds
E736 Python in the input of a worker
E737 input of a worker that uses a resource of another
E738 TPUEmbedding of TF2 with workers
E741 worker that sees another disk
E742 worker that cannot write
E743 saver that gathers the tables of a cluster
E744 tables larger than the memory of a worker
''',
    'configs': '''
E401 table_id that names no table
E402 no table or no feature
E403 illegal name
E404 two of one name
E405 too many tables or features
E410 illegal topology
W410 padding wastes memory
E411 batch that the cores cannot share
W411 no more rows than hosts
E412 illegal vocabulary size
W412 names that differ only in case
E413 illegal dimension
E414 unknown combiner
E415 initializer that cannot be called
E416 illegal number of steps
E417 illegal quantization
W420 learning rate 0
E421 illegal learning rate
E422 learning_rate_fn that cannot be called
W422 nearly every table has its own learning-rate tag
W423 tags of learning rates with a gap
E424 learning rate without its function
W424 many learning-rate functions of the same code
E425 hyper-parameter out of its range
W425 gradients are not accumulated
E426 illegal weight decay
W426 flag of weight decay without a factor
E427 illegal bounds
W427 non-lazy Adam on a large table
E428 non-lazy Adam without accumulation
W428 bounds that exclude 0
E429 clipping without accumulation
W429 FTRL on a table of several columns
E430 table without a feature
W430 initializer that is a class
E431 feature of an undefined table
W431 crossed or bucketized column
E432 illegal max_sequence_length
E433 illegal input_shape
E434 feature of two tables
E436 column that model_fn does not use
E437 one variable for two tables
E438 policy for ids out of range
E439 doubtful profile_data_directory
E440 unknown strategy
W440 div on several hosts with a large vocabulary
E441 unknown mode
W441 doubtful profile_data_directory
E442 no optimizer
E443 no optimizer of tables
E451 cores sum unequally often
E452 cores make different variables
E453 sum of TensorFlow in a model
E456 sum over cores within control flow
E457 tensor of a batch outside of a step
E458 unknown policy
E459 change of a variable within control flow
E460 name of optimizer state
E461 unknown argument
W461 clipping_limit
E462 table larger than the memory
W462 setting without effect
E463 tables larger than the memory
E464 look-up before variables
E465 look-up outside of replicas
E466 gradients without a look-up
E467 no dummy variables
E469 unreadable TF_CONFIG
E470 content that would be lost
E472 strategy or cluster given twice
E473 strategy over a cluster
E474 unknown kernels
W474 saving_listeners of a TrainSpec
E475 illegal number of threads
E476 table written beside its engine
E477 table variable made by a user
E478 input that does not fit the command
E480 file that cannot be read
E481 file too large
E482 empty input
E483 text that is no config
E484 binary that is no config
E486 text that is not UTF-8
E487 too many parts
E488 graph without a config
E489 damaged config in a graph
E491 directory or checkpoint without a config
E492 py: input that gives no config
E493 profiles that cannot be read
E495 initializer that is a class, in TF2
E496 column that the spec lacks
E497 column of another width than in the spec
E498 checkpoint options of another class
E499 spec of another class
''',
    'doctor': '''
E101 TensorFlow name that is gone
E102 private TensorFlow name that has moved
E103 name of tf.contrib that is not restored
E104 name that is refused
E105 name that contradicts the flags
E111 module whose package is missing
E112 module of the project that is not there
E113 name that an installed library lacks
E121 NumPy name that is gone
E122 Python name that is gone
E123 module of Python that is gone
E131 syntax that Python cannot read
E132 file that cannot be read
E133 file that is too deep or too long to examine
W201 name that cannot be resolved
W202 names that are made at run time
W203 library that is handed on
W211 tables that a plain optimizer trains
W212 evaluation or export of mod tables elsewhere
W213 one learning rate function per table
W214 optimizer without CrossShardOptimizer
W215 batch that the cores cannot share
W219 NumPy name that has another meaning today
W220 batch of each core that has the size of all
I301 name that etpe run restores
I302 name that --tf1 restores
I303 name that --contrib restores
I304 name of Keras 2
I305 missing name that the program expects to miss
''',
    'kernels': '''
E006 native kernels missing
W006 stock operations instead of native kernels
''',
    'limits': '''
E901 weights on the tensor core
E907 setting of TPUConfig, RunConfig or TF_CONFIG
E913 remote directory
E914 distribution strategy of a TPUEstimator
E915 export for the TPU alone
E916 optimizer of one's own
E917 operations without a graph
E918 optimizer without a published formula
E919 ids for a vocabulary, without the engine
E920 infeed queue
E925 infeed or outfeed
E926 training loop over several cores
E927 names of slots
E928 saver that a scaffold changes
E930 part of the original runner
W930 session at the port of a TPU
E938 model of Keras 3
E939 no TPU
E940 backend that cannot be chosen
''',
    'migrating': '''
E651 map that cannot be read
E652 migration from an unknown order
E653 no tables at the path of an object
E654 plan of a migration that does not work
E655 state that the target of a migration cannot hold
E656 destination of a migration that is in use
E657 no room for a migration
E658 row that differs after a migration
E659 map that cannot be written
E661 directory where rows or a checkpoint cannot be put
E662 table that cannot be exported
E663 package for Parquet missing
E665 file of rows that cannot be used
E666 rows of another type or shape
E667 ids that are missing, twice or too large
E668 numbers that are not finite in rows to be imported
E669 arguments for rows that do not fit, or say too little
E671 option without a counterpart
E672 optimizer without a counterpart
E673 object that cannot be written as source
E674 declaration that does not fill a config
E675 object that declares no embedding
E676 several training configs
E678 output that exists, or cannot be written
E679 sizes that the input states
E681 check that cannot be made
E682 object that is no side
E683 sides that cannot be compared
E684 side that failed
E685 side without a checkpoint
E686 side that took too long
E687 side with too few steps
''',
    'promises': '''
E501 id out of range
E510 ids of a wrong type
E511 batch of a wrong size
E512 several ids without a combiner
E513 feature missing
E514 elements of a wrong form
E515 sparse feature that nobody looks up
E516 sequence of a wrong rank
E517 weights of a wrong type
E518 weights that do not fit
E519 result of a computation
E520 input pipeline that failed
E521 end of input
E522 input that does not come
E523 prediction that is not per sample
E524 prediction that lost its session
E525 sparse or ragged tensors that are fetched to a TPU
W525 prediction without rows
E526 end of a queue or iterator in the model
W531 training outside of the main thread
E537 forked process
E801 gradients that are not finite
W801 step that changed no table
E802 sessions that are lost
E803 loss that is not finite
E804 weights that are not finite
E805 too many steps skipped
W806 summaries that cannot be written
''',
    'scripts': '''
E001 Keras 3 is in place
E002 package missing
E003 wrong tf-estimator-nightly
E004 module that is not there
E005 file that is no notebook
E007 too few logical CPU devices
W007 training without a checkpoint
''',
    'tf2': '''
W008 tables that the optimizer of the model trains
E445 optimizer that trains no table
E446 feature_config of other things
E447 slots that an engine cannot hold
E531 structure that differs from feature_config
E532 input of a wrong rank
E533 output shape that is not known
E534 input that contradicts the output shape
E535 ids outside of the output shape
E536 per_replica_input_shapes without shapes
E539 ids that are no argument of the step
E540 enqueue within a part of the step
E541 SavedModel that trains or looks up what others enqueued
E542 look-ups in a function that XLA compiles
E545 device that is no replica
E546 gradient that is no tensor
E547 gradient of a wrong shape
E548 replicas at different batches
E549 apply_gradients where replicas cannot meet
E550 call outside of the replicas
E551 eager call
E552 tables that are on the TPU
E553 object that is not built
E554 dequeue with nothing enqueued
E555 batch whose gradients did not come
E556 gradients without a batch
E557 too many batches that wait
E558 training without an optimizer
E559 second TPUEmbedding on one TPU
E921 eager step of a TPUStrategy
E922 replica of several cores
E923 dataset for each replica
E924 TPUEmbeddingV2
''',
}

ENTRIES: dict[str, Entry] = dict(sorted(
    (line[:4], Entry(line[5:], topic))
    for topic, lines in _BY_TOPIC.items() for line in lines.split('\n')[1:-1]))
