from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("wall_time", "step", "summary")
    class Tensor(_message.Message):
        __slots__ = ("dtype", "tensor_content", "float_val", "double_val")
        DTYPE_FIELD_NUMBER: _ClassVar[int]
        TENSOR_CONTENT_FIELD_NUMBER: _ClassVar[int]
        FLOAT_VAL_FIELD_NUMBER: _ClassVar[int]
        DOUBLE_VAL_FIELD_NUMBER: _ClassVar[int]
        dtype: int
        tensor_content: bytes
        float_val: _containers.RepeatedScalarFieldContainer[float]
        double_val: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, dtype: _Optional[int] = ..., tensor_content: _Optional[bytes] = ..., float_val: _Optional[_Iterable[float]] = ..., double_val: _Optional[_Iterable[float]] = ...) -> None: ...
    class Value(_message.Message):
        __slots__ = ("tag", "simple_value", "tensor")
        TAG_FIELD_NUMBER: _ClassVar[int]
        SIMPLE_VALUE_FIELD_NUMBER: _ClassVar[int]
        TENSOR_FIELD_NUMBER: _ClassVar[int]
        tag: str
        simple_value: float
        tensor: Event.Tensor
        def __init__(self, tag: _Optional[str] = ..., simple_value: _Optional[float] = ..., tensor: _Optional[_Union[Event.Tensor, _Mapping]] = ...) -> None: ...
    class Summary(_message.Message):
        __slots__ = ("value",)
        VALUE_FIELD_NUMBER: _ClassVar[int]
        value: _containers.RepeatedCompositeFieldContainer[Event.Value]
        def __init__(self, value: _Optional[_Iterable[_Union[Event.Value, _Mapping]]] = ...) -> None: ...
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    wall_time: float
    step: int
    summary: Event.Summary
    def __init__(self, wall_time: _Optional[float] = ..., step: _Optional[int] = ..., summary: _Optional[_Union[Event.Summary, _Mapping]] = ...) -> None: ...
