"""Every section of the specification of the runner has tests, which name it.

A test says `@pytest.mark.section('9.5')` where it shows promises of section 9.5, and a file says
`pytestmark = pytest.mark.section('11')` where all of its tests are of section 11. To read which
tests show what: `python tests/conformance/sections_test.py`.
"""

import ast
import pathlib

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent

SECTIONS = {
    '2.1': 'InputPipelineConfig', '2.2': 'TPUConfig', '2.3': 'RunConfig',
    '3': 'the constructor of TPUEstimator', '3.1': 'checks against the system',
    '4.1': 'how input_fn is called', '4.2': 'what input_fn may return',
    '4.3': 'how model_fn is called, and what it may return',
    '5': 'batch sizes, calls of input_fn, shares of replicas', '6': 'TPUContext',
    '7.1': 'the fields of TPUEstimatorSpec', '7.2': 'as_estimator_spec',
    '7.3': 'eval_metrics, host_call and scaffold_fn on a TPU', '8': 'CrossShardOptimizer',
    '9.1': 'the arguments of train', '9.2': 'loops and the steps where they end',
    '9.3': 'a time as iterations_per_loop', '9.4': 'threads that feed',
    '9.5': 'the order of hooks', '9.6': 'log lines and summaries', '9.7': 'checkpoints',
    '10': 'evaluate', '11': 'predict', '12': 'export_saved_model', '13': 'train_and_evaluate',
    '14': 'warm starts and resuming', '15': 'use_tpu=False', '16': 'how errors propagate',
    '17': 'shutdown and preemption', '18': 'embedding tables'}


def sections_of(source):
    """Yields (section, test) of all markers of a source; `None` for what is no test or section.

    The test of a marker that holds for a whole file or class is its name, `*` for a file.
    """
    tree = ast.parse(source)
    on_tests = {}
    for node in ast.walk(tree):
        if is_test(node):
            on_tests.update((id(decorator), node.name) for decorator in node.decorator_list)
        if isinstance(node, (ast.Module, ast.ClassDef)) and any(map(is_test, node.body)):
            on_tests.update((id(marker), getattr(node, 'name', '*'))
                            for marker in own_markers(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'pytest.mark.section':
            for argument in node.args or [None]:
                yield getattr(argument, 'value', None), on_tests.get(id(node))


def is_test(node):
    return (isinstance(node, ast.FunctionDef) and node.name.startswith('test_')
            or isinstance(node, ast.ClassDef) and node.name.startswith('Test'))


def own_markers(node):
    """What `pytestmark` is set to in a file or class."""
    for each in node.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == 'pytestmark':
            yield from each.value.elts if isinstance(each.value, ast.List) else [each.value]


def all_markers():
    """{section: [file::test]} of all tests of this package."""
    found = {}
    for path in sorted(TESTS.rglob('*_test.py')):
        for section, test in sections_of(path.read_text()):
            found.setdefault(section, []).append(f'{path.relative_to(TESTS)}::{test}')
    return found


def test_every_section_has_tests_and_every_marker_names_a_section():
    found = all_markers()
    unknown = {section: found[section] for section in found.keys() - SECTIONS.keys()}
    assert not unknown
    assert not SECTIONS.keys() - found.keys()


def test_every_marker_is_on_a_test():
    assert not [test for tests in all_markers().values() for test in tests
                if test.endswith('::None')]


@pytest.mark.parametrize('source, expected', [
    ("@pytest.mark.section('1', '2')\ndef test_a(): pass", [('1', 'test_a'), ('2', 'test_a')]),
    ("@pytest.mark.section('1')\ndef helper(): pass", [('1', None)]),
    ("@pytest.mark.section(1.2)\ndef test_a(): pass", [(1.2, 'test_a')]),
    ("@pytest.mark.section()\ndef test_a(): pass", [(None, 'test_a')]),
    ("@pytest.mark.section(number)\ndef test_a(): pass", [(None, 'test_a')]),
    ("pytestmark = pytest.mark.section('1')\ndef test_a(): pass", [('1', '*')]),
    ("pytestmark = [pytest.mark.soak, pytest.mark.section('1')]\ndef test_a(): pass",
     [('1', '*')]),
    ("pytestmark = pytest.mark.section('1')", [('1', None)]),
    ("class TestIt:\n  pytestmark = pytest.mark.section('1')\n  def test_a(self): pass",
     [('1', 'TestIt')]),
    ("text = \"@pytest.mark.section('1')\"\ndef test_a(): pass", [])])
def test_markers_are_found_with_the_tests_that_they_are_on(source, expected):
    assert list(sections_of(source)) == expected


if __name__ == '__main__':
    for number, title in SECTIONS.items():
        print(f'{number} {title}', *all_markers()[number], sep='\n    ')
