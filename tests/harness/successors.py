"""Findings with exact successors, for the tests of `etpe doctor --fix`."""

from estimator_tpu_embedding.doctor.facts import Finding, Place

SUCCESSORS = {
    'np.int': ('numpy.int', 'builtins.int'), 'np.bool': ('numpy.bool', 'numpy.bool_'),
    'collections.Mapping': ('collections.Mapping', 'collections.abc.Mapping'),
    'Mapping': ('collections.Mapping', 'collections.abc.Mapping'),
    'Iterable as It': ('collections.Iterable', 'collections.abc.Iterable'),
    'cPickle': ('cPickle', 'pickle'), 'cPickle.dumps': ('cPickle.dumps', 'pickle.dumps'),
    'cPickle as pickle': ('cPickle', 'pickle'),
    'tf.contrib.layers.xavier': ('tensorflow.contrib.layers.xavier',
                                 'tensorflow.compat.v1.glorot'),
    'xavier': ('tensorflow.contrib.layers.xavier', 'tensorflow.compat.v1.glorot'),
    'np.int.x': ('numpy.int', 'builtins.int')}


def found(text, *written, path='a.py'):
    """Findings at each place where something is written in a text, in the order of the text."""
    findings = []
    for what in written:
        subject, successor = SUCCESSORS[what]
        for number, line in enumerate(text.split('\n'), 1):
            column = line.find(what)
            while column >= 0:
                before, after = line[:column], line[column + len(what):]
                if not before.endswith(('.', '_')) and not after[:1].isalnum():
                    findings.append(Finding(
                        'E121', Place(path, number, column + 1, number, column + 1 + len(what)),
                        subject, what, 'is gone', successor=successor))
                column = line.find(what, column + 1)
    assert findings
    return findings
