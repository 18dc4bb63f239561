"""Summaries of TPU graphs, which tell what nodes there are by all that counts but their names.

A node is described by its operation, attributes, device, inputs and control inputs. A hash tells
what its inputs are, and theirs, up to `ROUNDS` nodes away. TensorFlow 2.15 runs this file, too.
"""

import collections
import hashlib
import re

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.tpu import tpu_embedding_configuration_pb2

_TPU = re.compile('TPU|feed|^CrossReplicaSum$|^BatchFunction$')

_LEFT_OUT = {'_class', 'bad_indices_policy', 'grad_a', 'grad_b', 'use_shardy_partitioner'}
"""Attributes that name other nodes; and those that only later versions of TensorFlow have.

The latter have their defaults in our graphs, which mean what TensorFlow 2.15 does.
"""


ROUNDS = 8


def of_graph(graph_def):
    """Returns what `differences` compares: the number of nodes by description.

    The nodes of embeddings, infeed, outfeed and replication are described in full, with the hash,
    and the others by their operation and the hash.
    """
    nodes = {node.name: node for node in graph_def.node}
    own = {node.name: _description(node, nodes) for node in graph_def.node}
    labels = own
    for _ in range(ROUNDS):
        labels = {node.name: _hash(' '.join([own[node.name], *_labels_of_inputs(node, labels)]))
                  for node in graph_def.node}
    found = collections.Counter(
        f'{own[node.name] if _TPU.search(node.op) else node.op} {labels[node.name]}'
        for node in graph_def.node)
    return dict(sorted(found.items()))


def of_meta_graph(meta_graph):
    """Returns the same for a graph of an export, with its signatures and with its functions.

    A node with a function has the hash of that function's own nodes.
    """
    graph = type(meta_graph.graph_def)()
    graph.node.extend(meta_graph.graph_def.node)
    for name, signature in sorted(meta_graph.signature_def.items()):
        for kind, infos in (('input', signature.inputs), ('output', signature.outputs)):
            for key, info in sorted(infos.items()):
                sparse = info.coo_sparse
                graph.node.add(
                    name=f'{name} {kind} {key}', op=f'{signature.method_name} {name} {kind} {key}',
                    input=[info.name] if info.name else [
                        sparse.indices_tensor_name, sparse.values_tensor_name,
                        sparse.dense_shape_tensor_name])
    for node in graph.node:  # A list of tensors writes its first without a number.
        node.input[:] = [each.removesuffix(':0') for each in node.input]
    functions = {one.signature.name: one for one in meta_graph.graph_def.library.function}
    found = collections.Counter()
    found.update(_with_functions(graph, functions, found))
    return dict(sorted(found.items()))


def _with_functions(graph, functions, found):
    """Returns the summary of a graph, and counts the nodes of its functions in `found`."""
    for node in graph.node:
        for value in node.attr.values():
            if value.WhichOneof('value') == 'func':
                function = functions[value.func.name]
                body = type(graph)()
                body.node.extend(function.node_def)
                for place, argument in enumerate(function.signature.input_arg):
                    body.node.add(name=argument.name, op=f'Argument {place}')
                for place, result in enumerate(function.signature.output_arg):
                    body.node.add(name=f'result {place}', op=f'Result {place}',
                                  input=[function.ret[result.name]])
                summary = _with_functions(body, functions, found)
                found.update(summary)
                value.s = _hash(repr(summary)).encode()
    return of_graph(graph)


def _labels_of_inputs(node, labels):
    """The labels of inputs in their order, and of control inputs in any."""
    inputs = [(name.partition(':')[::2]) for name in node.input if not name.startswith('^')]
    found = [labels[name] + output for name, output in inputs]
    if node.op == 'SendTPUEmbeddingGradients':  # Rates are in the order of tags.
        gradients = node.attr['N'].i
        found[gradients:] = sorted(found[gradients:])
    return found + sorted(labels[name[1:]] for name in node.input if name.startswith('^'))


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _description(node, nodes):
    parts = [node.op, node.device or '-']
    parts += [f'{key}={_value(value)}' for key, value in sorted(node.attr.items())
              if key not in _LEFT_OUT]
    inputs = [_producer(name, nodes) for name in node.input if not name.startswith('^')]
    controls = sorted(nodes[name[1:]].op for name in node.input if name.startswith('^'))
    return ' | '.join([*parts, f'inputs {_counted(inputs)}', f'after {_counted(controls)}'])


def _value(value):
    if value.WhichOneof('value') == 's':
        text = _config(value.s) or re.sub(r'cluster\w*', 'cluster', value.s.decode('latin-1'))
    else:
        text = re.sub(r'\s*\n\s*|^\w+: ', ' ', str(value)).replace('list { }', '[]').strip()
    return text if len(text) < 60 else f'hash {_hash(text)}'


def _config(value):
    """A config without the tags of rates, which TensorFlow 2.15 gives in the order of a set."""
    config = tpu_embedding_configuration_pb2.TPUEmbeddingConfiguration()
    try:
        config.ParseFromString(value)
    except DecodeError:
        return ''
    for table in config.table_descriptor:
        table.optimization_parameters.learning_rate.dynamic.ClearField('tag')
    return config.SerializeToString(deterministic=True).hex() if config.table_descriptor else ''


def _producer(name, nodes):
    name, _, output = name.partition(':')
    return nodes[name].op + (f':{output}' if output else '')


def _counted(operations):
    """Equal neighbours become one, with their number."""
    found = []
    for operation in operations:
        if found and found[-1][0] == operation:
            found[-1][1] += 1
        else:
            found.append([operation, 1])
    return '[' + ', '.join(f'{number} x {each}' for each, number in found) + ']'


def packed(summaries):
    """Returns summaries by name in a form without repetitions, for a file."""
    texts = sorted({text for counts in summaries.values() for text in counts})
    place = {text: index for index, text in enumerate(texts)}
    return {'texts': texts, 'graphs': {
        name: ' '.join(f'{place[text]}*{number}' for text, number in counts.items())
        for name, counts in summaries.items()}}


def unpacked(stored):
    """The inverse of `packed`."""
    return {name: {stored['texts'][int(place)]: int(number)
                   for place, number in (pair.split('*') for pair in line.split())}
            for name, line in stored['graphs'].items()}


def differences(ours, theirs):
    """Returns, by description, the numbers of nodes in two summaries where they differ."""
    return {text: (ours.get(text, 0), theirs.get(text, 0))
            for text in sorted({*ours, *theirs}) if ours.get(text) != theirs.get(text)}
