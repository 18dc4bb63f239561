"""What becomes of the parts' results; no file here needs TensorFlow."""

import pytest

from estimator_tpu_embedding.doctor.diagnose import diagnose

OLD = 'import string\nprint(string.letters)\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'gen').mkdir()
    for name in ('b.py', 'a.py', 'gen/c.py'):
        (tmp_path / name).write_text(OLD)
    return tmp_path


def places(diagnosis):
    return [(finding.place.path, finding.code) for finding in diagnosis.findings if finding.place]


def test_findings_come_by_file_and_are_counted(folder):
    found = diagnose(['.'])
    assert places(found) == [('a.py', 'E122'), ('b.py', 'E122'), ('gen/c.py', 'E122')]
    assert (found.files, found.lines, found.ignored, found.left_out) == (3, 6, {}, [])
    assert [one.path for one in found.prescriptions] == ['a.py', 'b.py', 'gen/c.py']
    assert [len(one.stops) for one in found.prescriptions] == [1, 1, 1]


def test_a_finding_that_is_not_selected_stops_a_program_all_the_same(folder):
    found = diagnose(['a.py'], select=('W',))
    assert (places(found), found.ignored) == ([], {'E122': 1})
    assert [stop.code for stop in found.prescriptions[0].stops] == ['E122']
    found = diagnose(['a.py'], ignore=('E12',))
    assert (found.ignored, found.prescriptions[0].stops) == ({'E122': 1}, [])


def test_a_file_that_the_user_names_is_a_program_if_nothing_else_is(folder):
    (folder / 'a.py').write_text('import os\nx = os.sep\n')
    for name in ('b.py', 'gen/c.py'):
        (folder / name).unlink()
    assert diagnose(['.']).prescriptions == []
    assert [one.path for one in diagnose(['a.py']).prescriptions] == ['a.py']
    (folder / 'b.py').write_text(OLD)
    assert [one.path for one in diagnose(['a.py', 'b.py']).prescriptions] == ['b.py']
