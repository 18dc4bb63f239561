"""What the C++ files may include, and how large they may be."""

import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]


def files_in(folder):
    """Name -> text of the C++ files in a folder."""
    return {path.name: path.read_text() for pattern in ('*.h', '*.cc')
            for path in sorted(folder.glob(pattern))}


CPP = files_in(TESTS.parent / 'estimator_tpu_embedding' / 'native' / 'src')
CPP_TESTS = files_in(TESTS / 'native')


def included_by(name):
    """What a C++ file includes: (the names in quotes, those in angle brackets)."""
    return tuple(re.findall(pattern, CPP[name], re.MULTILINE)
                 for pattern in (r'^#include "(.*)"', r'^#include <(.*)>'))


def test_cpp_files_stay_below_their_ceilings():
    files = {**CPP, **CPP_TESTS}
    assert [name for name, text in files.items() if len(text.splitlines()) > 300] == []
    assert [f'{name}:{number}' for name, text in files.items()
            for number, line in enumerate(text.splitlines(), 1) if len(line) > 100] == []


def test_only_operations_know_tensorflow():
    assert 'ops_common.h' in CPP
    assert [name for name in CPP if not name.startswith('ops_')
            and {'tf_api.h', 'ops_common.h'} & set(included_by(name)[0])] == []


def test_what_is_compiled_per_instruction_set_shares_no_inline_function():
    """The linker could keep that of the newest processor for all."""
    seen, left = set(), ['kernels_per_isa.cc']
    while left:
        name = left.pop()
        seen.add(name)
        own, of_system = included_by(name)
        assert set(of_system) <= {'stddef.h', 'stdint.h'}, name
        left += set(own) - seen
    assert seen == {'kernels_per_isa.cc', 'kernels.h', 'options.h', 'rules.h', 'lanes.h'}


def test_headers_of_cpp_do_not_include_each_other_in_circles():
    below, left = set(), {name for name in CPP if name.endswith('.h')}
    while left:
        free = {name for name in left if set(included_by(name)[0]) <= below}
        assert free, f'a circle among {left}'
        below |= free
        left -= free
