"""Makes the TPU graph of an export one that a CPU runs, to see what it computes.

A TPU would run the function of each `TPUPartitionedCall`; here the graph calls it.
"""

import pathlib
import shutil

import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import saved_model_pb2

from . import tpu_exports

_INSTEAD = {'TPUPartitionedCall': 'StatefulPartitionedCall', 'TPUReplicatedInput': 'Identity',
            'TPUReplicatedOutput': 'Identity', 'TPUReplicateMetadata': 'NoOp'}
_OUTPUT = {'TPUReplicatedOutput': 'outputs', 'TPUOrdinalSelector': 'device_ordinals'}
_KEPT = {'T', 'Tin', 'Tout', 'f'}


def runnable(path, directory):
    """Writes a copy of an export with nothing but the TPU graph, changed, and returns its path."""
    saved = saved_model_pb2.SavedModel()
    graph = saved.meta_graphs.add()
    graph.CopyFrom(tpu_exports.tpu_graph_of(path))
    _change(graph.graph_def.node)
    for function in graph.graph_def.library.function:
        outputs = _change(function.node_def)
        for name in function.ret:
            function.ret[name] = outputs.get(function.ret[name], function.ret[name])
    shutil.copytree(path, directory)
    pathlib.Path(directory, 'saved_model.pb').write_bytes(saved.SerializeToString())
    return str(directory)


def _change(nodes):
    """Changes nodes, and returns the new names of outputs in a function."""
    outputs = {}
    for node in nodes:
        if node.op in _OUTPUT:
            outputs[f'{node.name}:{_OUTPUT[node.op]}:0'] = f'{node.name}:output:0'
        if node.op in ('TPUOrdinalSelector', 'TPUCompilationResult'):
            constant = tf.NodeDef(name=node.name, op='Const', input=[
                name for name in node.input if name.startswith('^')])
            kind = 3 if node.op == 'TPUOrdinalSelector' else 7  # An int32 or a string.
            constant.attr['dtype'].type = constant.attr['value'].tensor.dtype = kind
            constant.attr['value'].tensor.tensor_shape.SetInParent()
            (constant.attr['value'].tensor.int_val if kind == 3 else
             constant.attr['value'].tensor.string_val).append(0 if kind == 3 else b'')
            node.CopyFrom(constant)
        if node.op == 'TPUPartitionedCall':
            data = [name for name in node.input if not name.startswith('^')]
            node.input.remove(data[-1])  # The ordinal of a core.
        if node.op in _INSTEAD:
            for name in set(node.attr) - (_KEPT if _INSTEAD[node.op] != 'NoOp' else set()):
                del node.attr[name]
            node.op = _INSTEAD[node.op]
        for name in [name for name in node.attr if name.startswith(('_tpu', '_xla'))]:
            del node.attr[name]
    for node in nodes:
        node.input[:] = [outputs.get(name, name) for name in node.input]
    return outputs
