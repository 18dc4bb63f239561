"""The codes E65x: checkpoints that are taken to another API."""

ENTRIES = {
    'E651': ('map that cannot be read',
             'A map is a text file that says which variable of a checkpoint becomes which one of '
             'another. A line of it is not as it must be, or there is no such file.',
             'Correct the lines that the message names. etpe docs migrating shows what a line '
             'can be.'),
    'E652': ('migration from an unknown order',
             'Rows of a table may be in the order of mod, and nothing beside the checkpoint says '
             'it. Or slices are not those of the hosts that were assumed. A migration with the '
             'wrong order would mix up the ids.',
             'Copy the manifest too. If you know the order: --assume mod:H for H hosts, or '
             '--assume div.'),
    'E653': ('no tables at the path of an object',
             'A checkpoint of TF2 holds objects, and each table is an attribute of one of them. '
             'The object that was named has no tables.',
             'Say where they are: --source-path PATH. The message lists objects with tables.'),
    'E654': ('plan of a migration that does not work',
             'Variables have no new name, or two would have the same one. Or the map is about '
             'variables that the checkpoint lacks, or makes names that cannot be.',
             'Correct the map. --template FILE writes one to begin with. --drop-rest leaves out '
             'what nothing names.'),
    'E655': ('state that the target of a migration cannot hold',
             'TF2 has five of the ten optimizers of tables, and the layer of TFRS has fewer. The '
             'checkpoint has slots of another one, or a tensor that was saved in columns.',
             '--drop-slots keeps the rows and lists the slots that are lost. Drop other tensors '
             'in the map.'),
    'E656': ('destination of a migration that is in use',
             'The new checkpoint needs a directory of its own. This one holds other checkpoints, '
             'or one of the same name, or is no directory.',
             'Name another directory. --overwrite replaces a checkpoint of the same name.'),
    'E657': ('no room for a migration',
             'The disk has fewer free bytes than the new checkpoint needs. Nothing was written.',
             'Make room, or name a directory on another disk.'),
    'E658': ('row that differs after a migration',
             'What was written is read again and compared with the source, id by id. A row '
             'differs, or the source has changed meanwhile, so nothing was published.',
             'Do not let a job write the source meanwhile. Look at the disk, and try again.'),
    'E659': ('map that cannot be written',
             'The file for a map is there already, or cannot be made. No file is replaced.',
             'Name another file.')}
