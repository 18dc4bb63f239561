"""The codes of clusters: workers, their addresses, and who answers there."""

ENTRIES = {
    'E701': ('contradiction in the choice of workers',
             'The hosts of a job are either emulated in its process, or workers at given '
             'addresses, or workers that it starts itself. A number or a deadline is out of range, '
             'or two of these ways were asked for.',
             'Give either --workers or --processes, and numbers in the range that the message '
             'names.'),
    'E702': ('malformed address of a worker',
             'An address has a machine, a colon and a port. IPv6 numbers stand in brackets.',
             'Write it like 10.0.0.3:8470 or [fd00::3]:8470.'),
    'E703': ('the same worker twice',
             'Each host of a job needs a worker of its own. Two addresses lead to one machine and '
             'port.',
             'Leave one of them out, or start another worker on another port.'),
    'E704': ('unknown machine',
             'The name in the address of a worker cannot be looked up. Nobody was contacted.',
             'Correct the name, or write the number of the machine.'),
    'E705': ('server that other machines could reach',
             'A server of TensorFlow listens on all interfaces, whatever address it is given, and '
             'asks for no password. A stranger who reaches it can run programs as its user. So it '
             'starts only where there is no interface but loopback, unless somebody agrees.',
             'If the network is private, say --expose or install(expose=True). Otherwise close '
             'the ports by a firewall first.'),
    'E706': ('port is taken',
             'A worker cannot listen on its port. The message names the process that does, if it '
             'can be seen.',
             'End that process, or choose another port.'),
    'E707': ('worker does not answer',
             'A job was told to use workers, and not all of them answered before the deadline. '
             'The message says who did. The job does not fall back to emulated hosts.',
             'Look at the machines with etpe worker ls, and start the workers that are missing.'),
    'E708': ('worker of another run',
             'A worker holds the shards of one run at a time. Another client has claimed this '
             'one, and renews its claim.',
             'End the other job, or take other workers.'),
    'E709': ('different versions in a cluster',
             'The client and all workers must have the same version of this package and of '
             'TensorFlow, and the same compiled kernels. The message has a table.',
             'Install the same package on all machines, then start their workers again.'),
    'E710': ('number of hosts and of workers differ',
             'Each worker is one host of the job, so the number of hosts follows from the workers. '
             'Another number was stated.',
             'Leave --hosts out, or give as many workers as hosts.'),
    'E711': ('own worker did not start',
             'A worker that the job started on this machine ended at once, or did not listen '
             'before the deadline.',
             'What it said stands on standard error, above the message.'),
    'E712': ('something else than a worker answers',
             'A server of TensorFlow listens at the address of a worker, but it is none of this '
             'package.',
             'Start etpe worker there, or correct the address.'),
    'E713': ('script without addresses',
             'The workers are to be taken from the script. But neither its TPUClusterResolver nor '
             'the master of its RunConfig has addresses with ports.',
             'Give the addresses themselves by --workers.'),
    'E714': ('address of another machine',
             'A process can listen only on addresses of its own machine.',
             'Choose one that the message lists.'),
    'E715': ('loopback among other addresses',
             'Workers take tensors from each other by the same addresses that the client uses. An '
             'address of loopback means another machine on each of them.',
             'Give the address by which other machines know the worker.'),
    'W701': ('training that uses no workers',
             'Workers were chosen, but a plain Estimator, or a TPUEstimator with use_tpu=False, '
             'trains in the process of the script. Its tables must fit there.',
             'Say use_tpu=True, or leave the workers out.'),
    'E721': ('lost worker',
             'A worker of a running job has ended, stands still, cannot be reached any more, or '
             'began anew, so the rows that it held are gone. The message says which of them. The '
             'job ends all workers, starts or awaits new ones, and goes on with the last '
             'checkpoint; no step counts twice.',
             'Nothing, if it happens rarely. After exit -9 look whether the machine ran out of '
             'memory.'),
    'E722': ('the same failure at the same step',
             'A job began anew after a failure, came to the same step, and failed in the same way '
             'on the same host, three times. It would do so for ever.',
             'Look at the log for what that step does on that host. Everything that was saved is '
             'there, so the job can go on when the cause is gone.'),
    'E723': ('cut connection to a worker',
             'A call between the processes of a job failed, though all workers answer. It may have '
             'changed some rows, so nothing of the session is used any more. The job goes on '
             'with the last checkpoint.',
             'If it happens often, look at the network between the machines.'),
    'E724': ('call that takes too long',
             'All workers answer the client, but a step or a save did not end within '
             'RunConfig(step_deadline_secs=...). Nothing of the session is used any more; the job '
             'goes on with the last checkpoint.',
             'Look whether each worker reaches each other one: packets between two of them may get '
             'lost. If steps or saves are just slow, give them more time.'),
    'E731': ('engine of another host',
             'Each host has an engine with its own rows. An operation of that engine was placed '
             'on another host, where it would read rows of other ids.',
             'This is a defect of the package: report it with the message.'),
    'E732': ('Python that uses what a host holds',
             'Workers have no Python of the job, so operations of model_fn that call Python, '
             'such as those of py_func, are executed by the client. An operation that uses a '
             'variable, a lookup table or a dataset of a host cannot move there.',
             'Read the variable outside of the function, or do that part in host_call, '
             'eval_metrics or input_fn.'),
    'E736': ('Python in the input of a worker',
             'With input_on_workers the input of each host is built on its worker. A worker has '
             'no Python of the job, so it cannot call functions such as those of from_generator, '
             'py_function and numpy_function.',
             'Leave input_on_workers off, or write that part in operations of TensorFlow.'),
    'E737': ('input of a worker that uses a resource of another',
             'A lookup table, a variable or a dataset stays in the process that made it. With '
             'input_on_workers each call of input_fn builds on another worker.',
             'Make it within input_fn, or leave input_on_workers off.'),
    'E738': ('TPUEmbedding of TF2 with workers',
             'The TPUEmbedding of TF2 has one variable per table, in the process of the job. It '
             'cannot put rows on workers, and it does not ignore that workers were asked for.',
             'Leave --workers and --processes out. A TPUEstimator, or the TPUEmbedding of TF1, '
             'trains tables that are too large for one machine.'),
    'E741': ('worker that sees another disk',
             'All processes of a job write and read the same checkpoints. A worker finds other '
             'files under a path than the client does, or none. No table was written or read.',
             'Take a directory on a disk that all machines share, under the same path on each.'),
    'E742': ('worker that cannot write',
             'Each worker writes the files of its own tables into the model_dir. The message says '
             'who cannot, and why. Nothing was trained.',
             'Let the user of that worker write there and make room on the disk, or take another '
             'directory.'),
    'E743': ('saver that gathers the tables of a cluster',
             'A saver of the model that is not sharded moves all variables to one process. No '
             'tensor of 2 GiB can leave its process.',
             'Make it with tf.train.Saver(sharded=True), or leave it out.'),
    'E744': ('tables larger than the memory of a worker',
             'A worker holds a part of each table, and its slots. The message names the worker, '
             'the bytes of its part, and the bytes that it could still use when it began.',
             'Take more workers on other machines, fewer or narrower rows, an optimizer with '
             'fewer slots, or more memory.'),
}
