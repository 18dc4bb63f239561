"""Code that an old protoc made: what the doctor says is what the installed protobuf does."""

import pytest
from harness.scanned import scanned

BEGINNING = '''from google.protobuf import descriptor as _descriptor
from google.protobuf import descriptor_pb2
'''
OLD = [
    '_A = _descriptor.FieldDescriptor(\n  "f", "a.f", 0, 1, 5, 1, 1, False, 0, None, None, None,'
    ' False, None)',
    '_A = _descriptor.EnumValueDescriptor(\n  "X", 0, 0)',
    '_A = _descriptor.Descriptor(\n  "A", "a.A", None, None, [], [], [], [])']
NEW = ['_A = descriptor_pb2.FieldDescriptorProto(name="f")',
       '_A = _descriptor.FieldDescriptor.TYPE_INT32']


def is_refused(text):
    try:
        exec(text, {})
    except TypeError as error:
        return 'Descriptors cannot be created directly' in str(error)
    return False


@pytest.mark.parametrize('text', OLD + NEW)
def test_it_is_announced_exactly_where_it_is_refused(tmp_path, text):
    file = scanned(tmp_path, a_pb2=BEGINNING + text)['a_pb2.py']
    assert [each.code for each in file.problems] == ['E104'] * is_refused(BEGINNING + text)
    assert [(each.place.line, each.place.column) for each in file.problems] in ([], [(3, 6)])


def test_it_is_slow_and_works_in_python_alone(tmp_path, monkeypatch):
    monkeypatch.setenv('PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION', 'python')
    assert not scanned(tmp_path, a_pb2=BEGINNING + OLD[0])['a_pb2.py'].problems
