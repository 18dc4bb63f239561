from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableProfile(_message.Message):
    __slots__ = ("format", "created_by", "table", "vocabulary_size", "dimension", "num_hosts", "cores_per_host", "batch_size", "strategy", "first_step", "last_step", "steps", "sampled_steps", "features", "unique_ids", "heavy_ids", "heavy_counts", "undercount", "ranges", "remainders", "registers", "div", "mod")
    class Feature(_message.Message):
        __slots__ = ("name", "max_sequence_length", "ids", "max_ids_per_example", "histogram")
        NAME_FIELD_NUMBER: _ClassVar[int]
        MAX_SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
        IDS_FIELD_NUMBER: _ClassVar[int]
        MAX_IDS_PER_EXAMPLE_FIELD_NUMBER: _ClassVar[int]
        HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
        name: str
        max_sequence_length: int
        ids: int
        max_ids_per_example: int
        histogram: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, name: _Optional[str] = ..., max_sequence_length: _Optional[int] = ..., ids: _Optional[int] = ..., max_ids_per_example: _Optional[int] = ..., histogram: _Optional[_Iterable[int]] = ...) -> None: ...
    class Load(_message.Message):
        __slots__ = ("ids", "unique_ids")
        IDS_FIELD_NUMBER: _ClassVar[int]
        UNIQUE_IDS_FIELD_NUMBER: _ClassVar[int]
        ids: _containers.RepeatedScalarFieldContainer[int]
        unique_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, ids: _Optional[_Iterable[int]] = ..., unique_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_SIZE_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    NUM_HOSTS_FIELD_NUMBER: _ClassVar[int]
    CORES_PER_HOST_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    LAST_STEP_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_STEPS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_IDS_FIELD_NUMBER: _ClassVar[int]
    HEAVY_IDS_FIELD_NUMBER: _ClassVar[int]
    HEAVY_COUNTS_FIELD_NUMBER: _ClassVar[int]
    UNDERCOUNT_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    REMAINDERS_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_FIELD_NUMBER: _ClassVar[int]
    DIV_FIELD_NUMBER: _ClassVar[int]
    MOD_FIELD_NUMBER: _ClassVar[int]
    format: int
    created_by: str
    table: str
    vocabulary_size: int
    dimension: int
    num_hosts: int
    cores_per_host: int
    batch_size: int
    strategy: str
    first_step: int
    last_step: int
    steps: int
    sampled_steps: int
    features: _containers.RepeatedCompositeFieldContainer[TableProfile.Feature]
    unique_ids: int
    heavy_ids: _containers.RepeatedScalarFieldContainer[int]
    heavy_counts: _containers.RepeatedScalarFieldContainer[int]
    undercount: int
    ranges: _containers.RepeatedScalarFieldContainer[int]
    remainders: _containers.RepeatedScalarFieldContainer[int]
    registers: bytes
    div: TableProfile.Load
    mod: TableProfile.Load
    def __init__(self, format: _Optional[int] = ..., created_by: _Optional[str] = ..., table: _Optional[str] = ..., vocabulary_size: _Optional[int] = ..., dimension: _Optional[int] = ..., num_hosts: _Optional[int] = ..., cores_per_host: _Optional[int] = ..., batch_size: _Optional[int] = ..., strategy: _Optional[str] = ..., first_step: _Optional[int] = ..., last_step: _Optional[int] = ..., steps: _Optional[int] = ..., sampled_steps: _Optional[int] = ..., features: _Optional[_Iterable[_Union[TableProfile.Feature, _Mapping]]] = ..., unique_ids: _Optional[int] = ..., heavy_ids: _Optional[_Iterable[int]] = ..., heavy_counts: _Optional[_Iterable[int]] = ..., undercount: _Optional[int] = ..., ranges: _Optional[_Iterable[int]] = ..., remainders: _Optional[_Iterable[int]] = ..., registers: _Optional[bytes] = ..., div: _Optional[_Union[TableProfile.Load, _Mapping]] = ..., mod: _Optional[_Union[TableProfile.Load, _Mapping]] = ...) -> None: ...
