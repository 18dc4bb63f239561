"""Serializes messages by hand, for files that protobuf itself would not write."""


def varint(number):
    """A number as the wire format writes it."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def field(number, content):
    """A field with a length: a message, a string or bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def node(config, name=b'ConfigureTPUEmbedding', op=b'ConfigureTPUEmbedding', attribute=b'config'):
    """A NodeDef with one attribute that is a string."""
    return field(1, name) + field(2, op) + field(
        5, field(1, attribute) + field(2, field(2, config)))


def graph(*nodes):
    """A GraphDef with the field `versions`, as TensorFlow writes it."""
    return b''.join(field(1, one) for one in nodes) + field(4, b'\x08\x01')


def meta_graph(graph_def):
    """A MetaGraphDef."""
    return field(1, field(5, b'2.21.0')) + field(2, graph_def)


def saved_model(graph_def):
    """A SavedModel."""
    return b'\x08\x01' + field(2, meta_graph(graph_def))
