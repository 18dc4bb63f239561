"""The codes of checkpoints and other files of a job: E60x to E64x, W61x and W63x."""

ENTRIES = {
    'E604': ('shape that differs from the checkpoint',
             'A variable of the job has another shape than in the checkpoint. So the values '
             'cannot be restored.',
             'Use the sizes that the checkpoint was trained with, or another model_dir. If '
             'rows were added to a table: etpe run --grow T, or CheckpointOptions(grow=...). '
             'etpe diff shows what changed.'),
    'E606': ('variable missing in the checkpoint',
             'The job has a variable that the checkpoint does not hold. Mostly the variable '
             'was renamed, or it is new.',
             'Use the names that the checkpoint was trained with, or another model_dir. If a '
             'table was renamed: etpe run --rename OLD=NEW, or CheckpointOptions(rename=...).'),
    'E608': ('mod without a manifest',
             'The manifest beside a checkpoint says which row of a mod table belongs to which '
             'id. This checkpoint has no manifest.',
             'Copy the manifest too. If you know the order: etpe run --assume mod:H for H '
             'hosts, or CheckpointOptions(assume=...).'),
    'E609': ('mod rows where rows must be in the order of ids',
             'The checkpoint holds its rows in the order of mod. Training with use_tpu=False '
             'cannot restore them, nor can variables whose parts are not one per host.',
             'Do what the message proposes.'),
    'E610': ('warm start in an unknown order',
             'A warm start reads rows from another checkpoint. The order of these rows is not '
             'known, or they cannot be reordered here.',
             'Do what the message proposes.'),
    'E611': ('manifest that cannot be read',
             'The manifest beside the checkpoint is damaged, or a newer version of this '
             'package wrote it.',
             'Restore the manifest from a copy, or use another checkpoint.'),
    'E612': ('no readable checkpoint',
             'model_dir has checkpoints, but all of them are damaged. The job does not begin '
             'anew, since that would hide the loss.',
             'Restore a copy, or move the damaged checkpoints away to begin anew.'),
    'E613': ('checkpoint that cannot be read',
             'The files of the checkpoint are damaged or incomplete.',
             'Use an older checkpoint.'),
    'E614': ('manifest of another checkpoint',
             'The manifest says other sizes, or another step, than its checkpoint holds. So '
             'one of the two does not belong here.',
             'Restore both from the same copy.'),
    'E615': ('profile_data_directory that cannot be written',
             'The job writes statistics of ids to this directory while it trains. A file could '
             'not be made or renamed there.',
             'Give a directory of this machine that the job may write to, or leave the setting '
             'out.'),
    'E616': ('file "checkpoint" that is no file of text',
             'model_dir has no checkpoint, and its file "checkpoint" is a pipe, a device, or '
             'far too large. TensorFlow would read all of it.',
             'Remove the file.'),
    'W616': ('profile set aside',
             'A file in profile_data_directory has the name of a profile of this job, but '
             'holds no profile. The file is kept under another name, and counting begins anew.',
             'Remove the file if nobody needs it.'),
    'E617': ('warm start from something that is no checkpoint',
             'The path names a pipe, a socket, a device, or a file that cannot be opened.',
             'Name a checkpoint, or a directory of checkpoints.'),
    'W617': ('profile not written',
             'Statistics of ids could not be written. The file is as it was before, or '
             'missing. Training is not affected.',
             'Look at the disk.'),
    'W618': ('file "checkpoint" set aside',
             'The file "checkpoint" names no checkpoint of model_dir, and cannot be replaced '
             'as a text file. It is kept under another name.',
             'Remove the file if nobody needs it.'),
    'E618': ('file that differs from what was saved',
             'A file of a checkpoint is missing, or its size or SHA-256 differs from the '
             'manifest. So the file was damaged or replaced.',
             'Use an older checkpoint, or restore the file from a copy.'),
    'E619': ('pointer to another directory',
             'The file "checkpoint" names a checkpoint outside of its directory. A copied '
             'model_dir often does so by accident.',
             'If you mean that checkpoint, use etpe run --follow-pointer or '
             'CheckpointOptions(follow_pointer=True). Otherwise remove the file.'),
    'W619': ('newer checkpoint in the place of a deleted one',
             'A job deleted the checkpoint while this command was about to read it. The '
             'command reads the newest checkpoint instead.',
             'Nothing has to be done.'),
    'E620': ('numbers that are not finite, not saved',
             'A table, a slot or another variable held NaN or infinity when it was to be '
             'saved. No checkpoint was written, since a job cannot learn from such numbers.',
             'Look at the variable that the message names. Training goes on from the last '
             'checkpoint.'),
    'E621': ('checkpoint that could not be written',
             'The disk is full, is read-only or has failed. Earlier checkpoints are unchanged.',
             'Make room on the disk, and start again.'),
    'E622': ('model_dir in use',
             "Another process trains in this directory. Two jobs would overwrite each other's "
             "checkpoints.",
             'Stop the other process, or use another model_dir.'),
    'E623': ('link in a model_dir',
             'A link stands where a file of a checkpoint should be. Links are neither followed '
             'nor replaced, since they may lead out of model_dir.',
             'Put the file itself there.'),
    'E624': ('model_dir on another kind of storage',
             'The promises about checkpoints hold for files of this machine. They do not hold '
             'for object stores.',
             'Train in a local directory, and copy its checkpoints.'),
    'E625': ('manifest that is not the expected one',
             'The SHA-256 of the manifest differs from CheckpointOptions(expected_digest=...). '
             'So somebody else wrote this checkpoint, or changed it.',
             'Find out who wrote the checkpoint.'),
    'E626': ('illegal checkpoint option',
             'A value of CheckpointOptions, or of an option of etpe about checkpoints, is not '
             'allowed.',
             'Give a value that the message allows.'),
    'E627': ('state of an input that is no file',
             'CheckpointInputPipelineHook found a link, a pipe or the like in the place of a '
             'file with the state of an input.',
             'Remove it.'),
    'E628': ('checkpoint that a job deleted',
             'A job deleted the checkpoint before it was read, to make room for newer ones. '
             'The checkpoint was not damaged.',
             'Name a newer checkpoint, or only the directory. Or let the job keep more, with '
             'keep_checkpoint_max of its RunConfig.'),
    'E629': ('other checkpoint after the deleted one',
             'A job deleted the checkpoint while it was being read. The next checkpoint holds '
             'other variables or tables, so reading cannot go on with it.',
             'Start again.'),
    'E630': ('unknown table in CheckpointOptions',
             'CheckpointOptions name a table that does not exist, or a name that fits several '
             'tables.',
             'Use a name that the message lists, or give more parts of the name.'),
    'E631': ('slots of another optimizer',
             'The checkpoint does not hold the slots that the optimizer of this job needs. The '
             'table was trained with another optimizer.',
             'Use the optimizer that the checkpoint was trained with. Otherwise: etpe run '
             '--reset-slots T, or CheckpointOptions(reset_slots=...).'),
    'W631': ('words with other ids than in the checkpoint',
             'A vocabulary file or list differs from the one of the checkpoint, so words get '
             'the rows of other words. Words that were added at the end are no difference.',
             'Restore the vocabulary that the checkpoint was trained with. To make this an '
             'error: etpe run --strict-vocabulary, or '
             'CheckpointOptions(strict_vocabulary=True).'),
    'E632': ('table that the job lacks',
             'The checkpoint holds a table that the job does not have. The next checkpoint '
             'would lose it.',
             'If the table was renamed: etpe run --rename OLD=NEW. If nobody needs it: etpe '
             'run --drop T. CheckpointOptions have the same fields.'),
    'E633': ('saver of a scaffold',
             'A saver of the model restores variables by name and shape. It cannot do what '
             'CheckpointOptions ask for.',
             'Leave the saver out until the next checkpoint is written.'),
    'E641': ('words with other ids than in the checkpoint, strict',
             'A vocabulary differs from the one of the checkpoint, as W631 says. The job asked '
             'for an error by CheckpointOptions(strict_vocabulary=True) or etpe run '
             '--strict-vocabulary.',
             'Restore the vocabulary that the checkpoint was trained with, or leave the option '
             'out.'),
    'E645': ('no checkpoint there',
             'A command about checkpoints got a path without a checkpoint, or a directory '
             'whose file "checkpoint" names none.',
             'Name a model_dir, or a checkpoint such as dir/model.ckpt-7. The next save writes '
             'the file "checkpoint" anew.'),
    'E646': ('numbers that are not finite in a checkpoint',
             'etpe checkpoint verify found NaN or infinity in a tensor. A job that starts from '
             'this checkpoint cannot learn.',
             'Use an older checkpoint.'),
}
