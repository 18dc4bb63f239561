"""E60x to E65x: what is on disk."""

ENTRIES = {
    'E604': ('shape that differs from the checkpoint', 'A variable of the job has another shape '
             'than the checkpoint holds.', 'Use the sizes it was trained with, or another '
             'model_dir. If rows were added to a table: etpe run --grow T, or '
             'CheckpointOptions(grow=...). etpe diff shows what changed.'),
    'E606': ('variable missing in the checkpoint', 'The job has a variable that the checkpoint '
             'does not hold.', 'Restore the names it was trained with, or use another model_dir. '
             'If a table was renamed: etpe run --rename OLD=NEW, CheckpointOptions(rename=...).'),
    'E608': ('mod without a manifest', 'What the rows of a mod table mean is in the manifest '
             'beside the checkpoint, and there is none.', 'Copy it too. If you know the order: '
             'etpe run --assume mod:H for H hosts, or CheckpointOptions(assume=...).'),
    'E609': ('mod rows where rows must be in the order of ids', 'Training with use_tpu=False, and '
             'variables in parts that are not those of hosts, cannot take them.', 'Do what the '
             'message proposes.'),
    'E610': ('warm start in an unknown order', 'Nobody says how the rows to start from are '
             'ordered, or they cannot be reordered here.', 'Do what the message proposes.'),
    'E611': ('manifest that cannot be read', 'The file beside the checkpoint is damaged or of a '
             'newer version.', 'Restore it from a copy, or use another checkpoint.'),
    'E612': ('no readable checkpoint', 'model_dir has checkpoints, all damaged.',
             'Restore a copy, or move them away to start anew.'),
    'E613': ('checkpoint that cannot be read', 'Its files are damaged or incomplete.',
             'Use an older one.'),
    'E614': ('manifest of another checkpoint', 'The manifest says other sizes or another step '
             'than its checkpoint holds.', 'Restore both from the same copy.'),
    'E615': ('profile_data_directory that cannot be written', 'Statistics of ids are written '
             'there while the job trains, and a file could not be made or renamed.',
             'Give a directory of this machine, or leave it out.'),
    'E616': ('file "checkpoint" that is none', 'Where model_dir has no checkpoint, its file '
             '"checkpoint" is a pipe, a device, or far too large, and TensorFlow would read all '
             'of it.', 'Remove it.'),
    'W616': ('profile set aside', 'A file in profile_data_directory has the name of a profile of '
             'this job and does not hold one. It is kept under another name, and counting begins '
             'anew.', 'Remove it if nobody needs it.'),
    'E617': ('warm start from what is no checkpoint', 'The path is that of a pipe, a socket, a '
             'device, or a file that cannot be opened.', 'Name a checkpoint, or a directory of '
             'checkpoints.'),
    'W617': ('profile not written', 'Statistics of ids could not be written, so the file is as '
             'it was before, or missing. Training is not affected.', 'Look at the disk.'),
    'W618': ('file "checkpoint" set aside', 'It names no checkpoint of model_dir, and is no text '
             'that could be replaced. It is kept under another name.', 'Remove it if nobody needs '
             'it.'),
    'E618': ('file that is not what was saved', 'A file of a checkpoint is missing, or its size '
             'or SHA-256 is not what the manifest says.', 'Use an older checkpoint, or restore '
             'the file from a copy.'),
    'E619': ('pointer to another directory', 'The file "checkpoint" names a checkpoint outside '
             'of its directory.', 'If that is meant, use etpe run --follow-pointer or '
             'CheckpointOptions(follow_pointer=True); else remove the file.'),
    'W619': ('newer checkpoint in the place of a deleted one', 'A job deleted the checkpoint '
             'that was to be read, so the newest is read.', 'Nothing has to be done.'),
    'E620': ('numbers that are not finite, not saved', 'A table, slot or other variable held NaN '
             'or infinity when it was to be saved.', 'Look at what the message names; training '
             'goes on from the last checkpoint.'),
    'E621': ('checkpoint that could not be written', 'The disk is full, read-only or failed. '
             'The checkpoints before it are as they were.', 'Make room, and start again.'),
    'E622': ('model_dir in use', 'Another process trains in this directory.',
             'Stop it, or use another model_dir.'),
    'E623': ('link in a model_dir', 'A file of a checkpoint, or what is in its place, is a link, '
             'which is neither followed nor replaced.', 'Put the file itself there.'),
    'E624': ('model_dir on another kind of storage', 'What is promised of checkpoints holds for '
             'files of this machine, not for object stores.', 'Train in a local directory and '
             'copy its checkpoints.'),
    'E625': ('manifest that is not the expected one', 'Its SHA-256 differs from '
             'CheckpointOptions(expected_digest=...).', 'Find out who wrote it.'),
    'E626': ('option of checkpoints', 'A value of CheckpointOptions is not one.',
             'See its documentation.'),
    'E627': ('state of an input that is no file', 'CheckpointInputPipelineHook found a link, a '
             'pipe or the like where a file of a state should be.', 'Remove it.'),
    'E628': ('checkpoint that a job deleted', 'It was deleted to make room for newer ones before '
             'it was read, which is no damage.', 'Name a newer one, or the directory alone; or '
             'let the job keep more, by keep_checkpoint_max of its RunConfig.'),
    'E629': ('other checkpoint after the deleted one', 'A job deleted the checkpoint that was '
             'being read, and the one that took its place holds other variables or tables.',
             'Start again.'),
    'E630': ('table that CheckpointOptions name', 'The name is that of no table, or of several.',
             'Take one that the message lists, or more parts of the name.'),
    'E631': ('slots of another optimizer', 'The checkpoint does not hold the state of the '
             'optimizer that this job trains the table with.', 'Use the optimizer it was trained '
             'with; or etpe run --reset-slots T, CheckpointOptions(reset_slots=...).'),
    'W631': ('words with other ids than in the checkpoint', 'A vocabulary file or list is not that '
             'of the checkpoint, so words get the rows of other words. Words that were added at '
             'the end are no difference.', 'Restore the vocabulary it was trained with. etpe run '
             '--strict-vocabulary, CheckpointOptions(strict_vocabulary=True) make it an error.'),
    'E632': ('table that the job lacks', 'The checkpoint has a table that the next one would not '
             'have.', 'If it was renamed: etpe run --rename OLD=NEW. If it is not needed: --drop '
             'T. The same are fields of CheckpointOptions.'),
    'E633': ('saver of a scaffold', 'A saver of the model restores variables by their names and '
             'shapes, and cannot do what CheckpointOptions ask for.', 'Leave it out until the '
             'next checkpoint is written.'),
    'E641': ('words with other ids than in the checkpoint, strict', 'What W631 warns of, where '
             'CheckpointOptions(strict_vocabulary=True) or etpe run --strict-vocabulary asks for '
             'an error.', 'Restore the vocabulary it was trained with, or leave the option out.'),
    'E645': ('no checkpoint there', 'A command about checkpoints was given a path where there is '
             'none, or a directory whose file "checkpoint" names none.', 'Name a model_dir, or a '
             'checkpoint such as dir/model.ckpt-7. The next save writes the file anew.'),
    'E646': ('numbers that are not finite in a checkpoint', 'etpe checkpoint verify found NaN or '
             'infinity in a tensor; a job that starts from it cannot learn.',
             'Use an older one.'),
}
