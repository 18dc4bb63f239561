"""The codes E68x."""

from __future__ import annotations

ENTRIES: dict[str, tuple[str, str, str]] = {
    'E681': ('check that cannot be made',
             'A check needs two objects py:module:object, a checkpoint for each, at least one '
             'step, and numbers for the tolerance and the deadline that make sense.',
             'Correct the argument that the message names.'),
    'E682': ('object that is no side',
             'A side of a check says how a job trains from a checkpoint: an EstimatorSide, a '
             'LoopSide, a KerasSide, or another object with a method train(checkpoint, steps). '
             'The message names each part that is missing.',
             'See the section on the proof in "etpe docs migrating".'),
    'E683': ('sides that cannot be compared',
             'Both jobs need the same features, with activations of the same shape, and tables of '
             'the same shape that the same features share.',
             'Correct the declaration of the new job, or give --feature for other names.'),
    'E684': ('side that failed',
             'The process of one job of a check ended with an error, or was killed.',
             'Read its traceback, which is above the message.'),
    'E685': ('side without records',
             'The process of one job of a check ended, and left nothing to compare.',
             'Let it end by itself, without os._exit.'),
    'E686': ('side that took too long',
             'The process of one job of a check did not end in time, and was killed.',
             'Raise the deadline, or find out what the job waits for.'),
    'E687': ('side with too few steps',
             'A check sees the steps that the engine of this package makes. One job made fewer '
             'steps than the check compares, or none. A TPUEmbeddingForServing, and a layer of '
             'TFRS outside of a TPUStrategy, leave their tables to an optimizer of Keras.',
             'Give the job more batches, or make its model in the scope of a TPUStrategy.'),
    'E688': ('side with several engines',
             'A check compares the tables of one TPUEmbedding. One job has trained two or more.',
             'Check them one by one, with the others left out of the model.'),
}
