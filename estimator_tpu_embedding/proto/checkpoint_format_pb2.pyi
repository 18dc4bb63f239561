from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BundleHeader(_message.Message):
    __slots__ = ("num_shards", "endianness", "version")
    class Version(_message.Message):
        __slots__ = ("producer", "min_consumer")
        PRODUCER_FIELD_NUMBER: _ClassVar[int]
        MIN_CONSUMER_FIELD_NUMBER: _ClassVar[int]
        producer: int
        min_consumer: int
        def __init__(self, producer: _Optional[int] = ..., min_consumer: _Optional[int] = ...) -> None: ...
    NUM_SHARDS_FIELD_NUMBER: _ClassVar[int]
    ENDIANNESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    num_shards: int
    endianness: int
    version: BundleHeader.Version
    def __init__(self, num_shards: _Optional[int] = ..., endianness: _Optional[int] = ..., version: _Optional[_Union[BundleHeader.Version, _Mapping]] = ...) -> None: ...

class BundleEntry(_message.Message):
    __slots__ = ("dtype", "shape", "shard_id", "offset", "size", "crc32c", "slices")
    class Shape(_message.Message):
        __slots__ = ("dim",)
        class Dim(_message.Message):
            __slots__ = ("size",)
            SIZE_FIELD_NUMBER: _ClassVar[int]
            size: int
            def __init__(self, size: _Optional[int] = ...) -> None: ...
        DIM_FIELD_NUMBER: _ClassVar[int]
        dim: _containers.RepeatedCompositeFieldContainer[BundleEntry.Shape.Dim]
        def __init__(self, dim: _Optional[_Iterable[_Union[BundleEntry.Shape.Dim, _Mapping]]] = ...) -> None: ...
    class Slice(_message.Message):
        __slots__ = ("extent",)
        class Extent(_message.Message):
            __slots__ = ("start", "length")
            START_FIELD_NUMBER: _ClassVar[int]
            LENGTH_FIELD_NUMBER: _ClassVar[int]
            start: int
            length: int
            def __init__(self, start: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...
        EXTENT_FIELD_NUMBER: _ClassVar[int]
        extent: _containers.RepeatedCompositeFieldContainer[BundleEntry.Slice.Extent]
        def __init__(self, extent: _Optional[_Iterable[_Union[BundleEntry.Slice.Extent, _Mapping]]] = ...) -> None: ...
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARD_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    dtype: int
    shape: BundleEntry.Shape
    shard_id: int
    offset: int
    size: int
    crc32c: int
    slices: _containers.RepeatedCompositeFieldContainer[BundleEntry.Slice]
    def __init__(self, dtype: _Optional[int] = ..., shape: _Optional[_Union[BundleEntry.Shape, _Mapping]] = ..., shard_id: _Optional[int] = ..., offset: _Optional[int] = ..., size: _Optional[int] = ..., crc32c: _Optional[int] = ..., slices: _Optional[_Iterable[_Union[BundleEntry.Slice, _Mapping]]] = ...) -> None: ...

class ObjectGraph(_message.Message):
    __slots__ = ("nodes",)
    class Reference(_message.Message):
        __slots__ = ("node_id", "local_name")
        NODE_ID_FIELD_NUMBER: _ClassVar[int]
        LOCAL_NAME_FIELD_NUMBER: _ClassVar[int]
        node_id: int
        local_name: str
        def __init__(self, node_id: _Optional[int] = ..., local_name: _Optional[str] = ...) -> None: ...
    class Value(_message.Message):
        __slots__ = ("name", "full_name", "checkpoint_key")
        NAME_FIELD_NUMBER: _ClassVar[int]
        FULL_NAME_FIELD_NUMBER: _ClassVar[int]
        CHECKPOINT_KEY_FIELD_NUMBER: _ClassVar[int]
        name: str
        full_name: str
        checkpoint_key: str
        def __init__(self, name: _Optional[str] = ..., full_name: _Optional[str] = ..., checkpoint_key: _Optional[str] = ...) -> None: ...
    class Slot(_message.Message):
        __slots__ = ("original_variable_node_id", "slot_name", "slot_variable_node_id")
        ORIGINAL_VARIABLE_NODE_ID_FIELD_NUMBER: _ClassVar[int]
        SLOT_NAME_FIELD_NUMBER: _ClassVar[int]
        SLOT_VARIABLE_NODE_ID_FIELD_NUMBER: _ClassVar[int]
        original_variable_node_id: int
        slot_name: str
        slot_variable_node_id: int
        def __init__(self, original_variable_node_id: _Optional[int] = ..., slot_name: _Optional[str] = ..., slot_variable_node_id: _Optional[int] = ...) -> None: ...
    class Saver(_message.Message):
        __slots__ = ("name", "object_name")
        NAME_FIELD_NUMBER: _ClassVar[int]
        OBJECT_NAME_FIELD_NUMBER: _ClassVar[int]
        name: str
        object_name: str
        def __init__(self, name: _Optional[str] = ..., object_name: _Optional[str] = ...) -> None: ...
    class Node(_message.Message):
        __slots__ = ("children", "attributes", "slot_variables", "registered_saver")
        CHILDREN_FIELD_NUMBER: _ClassVar[int]
        ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
        SLOT_VARIABLES_FIELD_NUMBER: _ClassVar[int]
        REGISTERED_SAVER_FIELD_NUMBER: _ClassVar[int]
        children: _containers.RepeatedCompositeFieldContainer[ObjectGraph.Reference]
        attributes: _containers.RepeatedCompositeFieldContainer[ObjectGraph.Value]
        slot_variables: _containers.RepeatedCompositeFieldContainer[ObjectGraph.Slot]
        registered_saver: ObjectGraph.Saver
        def __init__(self, children: _Optional[_Iterable[_Union[ObjectGraph.Reference, _Mapping]]] = ..., attributes: _Optional[_Iterable[_Union[ObjectGraph.Value, _Mapping]]] = ..., slot_variables: _Optional[_Iterable[_Union[ObjectGraph.Slot, _Mapping]]] = ..., registered_saver: _Optional[_Union[ObjectGraph.Saver, _Mapping]] = ...) -> None: ...
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[ObjectGraph.Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[ObjectGraph.Node, _Mapping]]] = ...) -> None: ...

class Graph(_message.Message):
    __slots__ = ("node", "library", "versions")
    class Attribute(_message.Message):
        __slots__ = ("key", "value")
        class Value(_message.Message):
            __slots__ = ("s",)
            S_FIELD_NUMBER: _ClassVar[int]
            s: bytes
            def __init__(self, s: _Optional[bytes] = ...) -> None: ...
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: bytes
        value: Graph.Attribute.Value
        def __init__(self, key: _Optional[bytes] = ..., value: _Optional[_Union[Graph.Attribute.Value, _Mapping]] = ...) -> None: ...
    class Node(_message.Message):
        __slots__ = ("name", "op", "attr")
        NAME_FIELD_NUMBER: _ClassVar[int]
        OP_FIELD_NUMBER: _ClassVar[int]
        ATTR_FIELD_NUMBER: _ClassVar[int]
        name: bytes
        op: bytes
        attr: _containers.RepeatedCompositeFieldContainer[Graph.Attribute]
        def __init__(self, name: _Optional[bytes] = ..., op: _Optional[bytes] = ..., attr: _Optional[_Iterable[_Union[Graph.Attribute, _Mapping]]] = ...) -> None: ...
    class Function(_message.Message):
        __slots__ = ("signature", "node_def")
        class Signature(_message.Message):
            __slots__ = ("name",)
            NAME_FIELD_NUMBER: _ClassVar[int]
            name: bytes
            def __init__(self, name: _Optional[bytes] = ...) -> None: ...
        SIGNATURE_FIELD_NUMBER: _ClassVar[int]
        NODE_DEF_FIELD_NUMBER: _ClassVar[int]
        signature: Graph.Function.Signature
        node_def: _containers.RepeatedCompositeFieldContainer[Graph.Node]
        def __init__(self, signature: _Optional[_Union[Graph.Function.Signature, _Mapping]] = ..., node_def: _Optional[_Iterable[_Union[Graph.Node, _Mapping]]] = ...) -> None: ...
    class Library(_message.Message):
        __slots__ = ("function",)
        FUNCTION_FIELD_NUMBER: _ClassVar[int]
        function: _containers.RepeatedCompositeFieldContainer[Graph.Function]
        def __init__(self, function: _Optional[_Iterable[_Union[Graph.Function, _Mapping]]] = ...) -> None: ...
    class Versions(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    node: _containers.RepeatedCompositeFieldContainer[Graph.Node]
    library: Graph.Library
    versions: Graph.Versions
    def __init__(self, node: _Optional[_Iterable[_Union[Graph.Node, _Mapping]]] = ..., library: _Optional[_Union[Graph.Library, _Mapping]] = ..., versions: _Optional[_Union[Graph.Versions, _Mapping]] = ...) -> None: ...

class MetaGraph(_message.Message):
    __slots__ = ("graph_def",)
    GRAPH_DEF_FIELD_NUMBER: _ClassVar[int]
    graph_def: Graph
    def __init__(self, graph_def: _Optional[_Union[Graph, _Mapping]] = ...) -> None: ...

class SavedModel(_message.Message):
    __slots__ = ("meta_graphs",)
    META_GRAPHS_FIELD_NUMBER: _ClassVar[int]
    meta_graphs: _containers.RepeatedCompositeFieldContainer[MetaGraph]
    def __init__(self, meta_graphs: _Optional[_Iterable[_Union[MetaGraph, _Mapping]]] = ...) -> None: ...
