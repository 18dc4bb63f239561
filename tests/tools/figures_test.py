"""Tables of figures in documents are those that the committed files give."""

import json

import pytest
from harness.processes import ROOT

DOCUMENTS = [ROOT / 'README.md', *sorted((ROOT / 'estimator_tpu_embedding').rglob('*.md'))]
RESULTS = sorted((ROOT / 'tools' / 'bench' / 'results').glob('*.json'))
CONTENT = {
    'format': 1, 'benchmark': 'job', 'figures': {
        'ours': {'unit': 'ms/step', 'median': 12.3456, 'low': 12, 'high': 12.5, 'windows': 20},
        'plain, ratio': {'unit': 'times ours', 'median': 3, 'low': 3, 'high': 3, 'windows': 1}},
    'circumstances': {
        'commit': 40 * '0', 'dirty': False, 'date': '2026-01-02T03:04:05+00:00',
        'command': 'tools/bench/job.py', 'versions': {'python': '3.11.7', 'tensorflow': None},
        'machine': {'cpu': 'CPU', 'cores': 2, 'memory_gib': 16.0, 'kernel': 'Linux 6'},
        'load': {'before': [.12, 1, 1], 'after': [1.5, 1, 1],
                 'during': {'median': 1.21, 'highest': 1.71, 'samples': 9}}}}
TABLE = '''\
| figure | median | unit | middle half | windows |
|---|--:|---|---|--:|
| ours | 12.3 | ms/step | 12 to 12.5 | 20 |
| plain, ratio | 3 | times ours |  | 1 |

`tools/bench/job.py` at 000000000000, 2026-01-02; 2 cores of CPU, 16.0 GiB, Linux 6; \
python 3.11.7; load 0.1 before, 1.2 during, at most 1.7.
'''


@pytest.fixture
def figures(bench):
    return bench('figures')


@pytest.fixture
def root(tmp_path):
    """A folder with one file of figures, `job.json`."""
    (tmp_path / 'job.json').write_text(json.dumps(CONTENT))
    return tmp_path


def test_a_wanted_figure_says_whether_it_is_met(figures):
    content = json.loads(json.dumps(CONTENT))
    content['figures']['plain, ratio']['least'] = 3
    content['figures']['ours']['most'] = 12
    content['circumstances']['load']['others'] = .004
    content['circumstances']['disturbed'] = 2
    table = figures.table(content)
    assert '| 20 | at most 12: **missed** |' in table and '| 1 | at least 3: met |' in table
    assert 'at most 1.7, others 0.4% of the CPU time, 2 disturbed windows thrown away.' in table


def document(table, patterns=''):
    return (f'Before.\n\n<!-- figures: job.json{patterns} -->\n{table}<!-- /figures -->\n\n'
            'After.\n')


@pytest.mark.parametrize('path', DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_tables_of_a_document_are_those_of_the_files(figures, path):
    text = path.read_text()
    assert figures.filled(text) == text, f'run tools/bench/figures.py --fill {path.name}'


def test_a_committed_file_has_figures_and_a_commit_and_no_noise(figures):
    for path in RESULTS:
        content = figures.read(path)
        assert content['circumstances'].get('disturbed', 0) is not None, path
        assert content['benchmark'] == path.stem.partition('-')[0]
        assert content['circumstances']['commit'] and not content['circumstances']['dirty'], path
        assert figures.table(content)


def test_a_table_is_put_between_the_comments_and_stays(figures, root):
    filled = figures.filled(document('something old\n'), root)
    assert filled == document(TABLE)
    assert figures.filled(filled, root) == filled


@pytest.mark.parametrize('text', [
    document('', ' nothing*'), document('').replace('job.json', 'missing.json'),
    document('').replace('<!-- /figures -->', ''), 'Text. <!-- /figures -->'])
def test_what_cannot_be_filled_is_an_error(figures, root, text):
    with pytest.raises(ValueError):
        figures.filled(text, root)
