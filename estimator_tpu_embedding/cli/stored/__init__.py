"""The commands of `etpe checkpoint`, and how they find and open checkpoints.

Read in this order: `directory` lists a directory, `opened` finds the checkpoint that a path means
and opens it. `show`, `diff` and `verify` are further commands. `options` has the arguments that
they share.
"""
