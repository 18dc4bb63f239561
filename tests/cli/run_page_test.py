"""`etpe report`: facts of runs, and the page, which escapes every foreign text."""

import hashlib
import html.parser
import json
import math
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from harness import forged_job, groups, wire
from harness.commands import config_of
from harness.event_files import event, write
from harness.processes import ROOT
from harness.profiles import profile_of, subject
from harness.waiting import until

from estimator_tpu_embedding.checkpoint import event_files, profile_files
from estimator_tpu_embedding.cli import run_page

SECTIONS = ['metrics', 'time', 'throughput', 'tables', 'ids', 'load', 'checkpoints', 'topology',
            'configuration']
EVIL = '</script><script>alert("1")</script><img src=x onerror=alert(2)>'


class Page(html.parser.HTMLParser):
    """The elements of a page, with their attributes, and the texts of headings."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.headings, self._inside = [], [], None
        self.feed(text)
        self.charts = json.loads(text.partition('id="charts">')[2].partition('</script>')[0])

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ('h2', 'h3', 'figcaption') else self._inside

    def handle_endtag(self, tag):
        self._inside = None if tag == self._inside else self._inside

    def handle_data(self, data):
        if self._inside and data.strip():
            self.headings.append(' '.join(data.split()))


def rates(step, **phases):
    return event(step, **{'global_step/sec': 10., 'examples/sec': 80.}, **{
        f'tpu_embedding__secs_per_step__{name}': phases.get(name, .01)
        for name in ('input', 'lookup', 'dense', 'update')})


def run_of(directory, *, name='t', hosts=2, loss=1.):
    """A model_dir of one table of that name, with everything in it that a report reads."""
    forged_job.save(directory, name=f'scope/{name}' if name == 't' else 'scope/t')
    write(directory, event(1, loss=2.), event(2, loss=loss, **{
        f'tpu_embedding/{name}/rows_touched': 5., f'tpu_embedding/ids_missing/{name}': 3.}),
        rates(2, input=.05), event(7, tpu_embedding__checkpoint_secs=1.5))
    write(directory / 'eval', event(2, loss=1.5, accuracy=.75))
    config = config_of('census_training_1x1.pbtxt')
    del config.table_descriptor[1:], config.feature_descriptor[1:]
    table = config.table_descriptor[0]
    table.name, table.vocabulary_size, table.dimension = name, 11, 3
    config.num_hosts, config.num_tensor_cores = hosts, 2 * hosts
    config.profile_data_directory = str(directory / 'profile')
    (directory / 'of_run.graph.pb').write_bytes(wire.graph(wire.node(config.SerializeToString())))
    (directory / 'profile').mkdir()
    profile_files.write(str(directory / 'profile'), profile_of(
        subject(11, table=name, dimension=3), [[0, 0, 0, 7]]))
    return directory


def test_every_section_has_its_numbers(etpe, tmp_path):
    run, = etpe.json('report', run_of(tmp_path / 'm'))['runs']
    assert [section for section in SECTIONS if 'absent' in run[section]] == []
    assert run['sentence'] == ('7 steps of 2,048 samples on 2 hosts with 4 cores in all, with 1 '
                               'div-partitioned table of 264 B, trained by adagrad; last loss 1; '
                               '80 examples/s.')
    assert run['metrics']['evaluations']['eval']['accuracy'] == {
        'steps': [2], 'values': [.75], 'count': 1}
    shares = run['time']['shares']
    assert {name: round(share, 6) for name, share in shares.items()} == {
        'input': .5, 'lookup': .1, 'dense': .1, 'update': .1, 'other': .2}
    assert run['time']['advice'][0].startswith('Steps wait for their input 50% of the time.')
    table, = run['tables']['rows']
    assert (table['variable'], table['norms']['rows'], table['bytes']) == ('scope/t', 11, 264)
    assert run['ids']['missing']['t']['values'] == [3.]
    assert run['ids']['heaviest'][0] == {
        'table': 't', 'first': 0, 'last': 0, 'share': .75, 'even': 1 / 11}
    assert run['load']['hosts'] == [1, 2, 4, 8, 16, 32, 64]
    assert run['load']['div'][:2] == [1., 1.5]
    saved, = run['checkpoints']['rows']
    assert (saved['name'], saved['seconds']) == ('model.ckpt-7', 1.5)
    assert run['topology']['rows_of_host'] == [6, 5]
    assert run['warnings'] == []


def test_what_is_not_there_is_said_in_a_line(etpe, tmp_path):
    run, = etpe.json('report', tmp_path)['runs']
    assert [list(run[section]) for section in SECTIONS] == [['absent']] * len(SECTIONS)
    page = page_of(etpe, tmp_path, tmp_path)
    assert page.charts == []
    assert [tag for tag, _ in page.elements].count('section') == 1 + len(SECTIONS)


def page_of(etpe, tmp_path, *arguments, status=0):
    etpe('report', *arguments, '-o', tmp_path / 'report.html', status=status)
    return Page((tmp_path / 'report.html').read_text())


def test_the_page_has_a_chart_for_each_kind_of_numbers(etpe, tmp_path):
    page = page_of(etpe, tmp_path, run_of(tmp_path / 'm'))
    assert page.headings == [
        'Warnings', 'Loss and metrics', 'loss', 'accuracy', 'Where the time of a step went',
        'Time of a step', '%', 'Throughput', 'Examples per second', '/s', 'Steps per second', '/s',
        'Tables', 'Norms of rows in model.ckpt-7', 't', 'rows', 'Ids', 'Distinct rows of a step',
        'count', 'Missing ids so far', 'count', 'Load of hosts', 'Fullest host over the mean', '×',
        'Checkpoints', 'Sizes of checkpoints', 'MiB', 'Topology', 'Configuration']
    loss = page.charts[0]
    assert (loss['labels'], loss['x'], loss['y']) == (
        ['train', 'eval'], [1, 2], [[2., 1.], [None, 1.5]])


def test_nothing_is_loaded_from_elsewhere(etpe, tmp_path):
    page = page_of(etpe, tmp_path, run_of(tmp_path / 'm'))
    named = [value for _, found in page.elements for key, value in found.items()
             if key in ('src', 'href')]
    assert [one for one in named if not one.startswith('#')] == ['data:,']
    assert "default-src 'none'" in str(page.elements)


def test_foreign_texts_are_escaped(etpe, tmp_path):
    plain = page_of(etpe, tmp_path, run_of(tmp_path / 'plain'))
    evil = run_of(tmp_path / 'evil', name=EVIL)
    write(evil, event(1, **{EVIL: 1., f'tpu_embedding/ids_missing/{EVIL}': 1.}), b'\xff',
          name=f'{EVIL.replace("/", "")}.tfevents.1')
    page = page_of(etpe, tmp_path, evil, status=1)
    for tag in ('script', 'img'):
        assert [one for one, _ in page.elements].count(tag) == [
            one for one, _ in plain.elements].count(tag)
    assert not [found for _, found in page.elements if 'onerror' in found]
    assert {EVIL, f'{EVIL}, rows'} & {one['title'] for one in page.charts}


def test_two_runs_are_side_by_side_with_their_differences_marked(etpe, tmp_path):
    page = page_of(etpe, tmp_path, run_of(tmp_path / 'a'), run_of(tmp_path / 'b', hosts=4))
    assert page.charts[0]['labels'] == ['train, a', 'eval, a', 'train, b', 'eval, b']
    marked = [tag for tag, found in page.elements if found.get('class') == 'differs']
    assert marked == ['tr'] * 3  # Hosts, cores and the directory of profiles.
    assert 'What differs' in page.headings


@pytest.mark.parametrize('damage, said', [
    (lambda run: (run / 'model.ckpt-7.index').write_bytes(b'x'), 'E61'),
    (lambda run: (run / 'model.ckpt-7.tables.json').write_text('{'), 'E611'),
    (lambda run: next((run / 'profile').iterdir()).write_text('{'), 'E493'),
    (lambda run: write(run, event(1, loss=float('nan'))), '"loss" was not finite at step 1'),
    (lambda run: write(run, event(1, tpu_embedding__steps_skipped=2.)),
     '2 steps changed no table')])
def test_what_is_wrong_is_a_warning(etpe, tmp_path, damage, said):
    run = run_of(tmp_path / 'm')
    damage(run)
    page_of(etpe, tmp_path, run, status=1)
    assert said in etpe('report', run, '-o', tmp_path / 'report.html', status=1)


def test_a_checkpoint_without_a_time_has_no_place_in_a_chart_and_its_damage_is_said_once(
        etpe, tmp_path):
    run = run_of(tmp_path / 'm')
    (run / 'model.ckpt-7.tables.json').write_text('{')
    page = page_of(etpe, tmp_path, run, status=1)
    assert all(one['x'] for one in page.charts)
    warnings = etpe.json('report', run, status=1)['runs'][0]['warnings']
    assert len([one for one in warnings if 'its manifest' in one]) == 1


def test_names_in_charts_have_no_control_characters(etpe, tmp_path):
    run = run_of(tmp_path / 'm')
    write(run / os.fsdecode(b'ev\xff\x1b'), event(1, **{'a\u202eb': 1.}))
    page = page_of(etpe, tmp_path, run)
    assert [(one['title'], one['labels']) for one in page.charts if 'b' in one['title']][:1] == [
        (r'a\u202eb', [r'ev\udcff\x1b'])]


@pytest.mark.parametrize('number', [float('nan'), float('inf'), -float('inf'), 3e38, -1.])
def test_any_numbers_in_event_files_make_a_page(etpe, tmp_path, number):
    run = run_of(tmp_path / 'm')
    tags = list(event_files.read(str(run)).series)
    write(run, *[event(step, **dict.fromkeys(tags, number)) for step in (-2**63, 2, 2**63 - 1)])
    assert etpe.json('report', run, '-o', tmp_path / 'report.html', status=int(
        not math.isfinite(number)))
    assert Page((tmp_path / 'report.html').read_text()).charts


def test_wrong_usage_is_said(etpe, tmp_path):
    assert 'E645' in etpe('report', tmp_path / 'none', '--format', 'json', status=2)
    assert '-o FILE' in etpe('report', tmp_path, status=2)
    assert 'E678 -o' in etpe('report', tmp_path, '-o', tmp_path / 'no' / 'page', status=2)
    assert '--watch' in etpe('report', tmp_path, '-o', 'x', '--watch', 'nan', status=2)


def test_a_page_needs_jinja2(etpe, tmp_path, monkeypatch):
    monkeypatch.setattr(run_page.importlib.util, 'find_spec', lambda name: None)
    assert 'E663' in etpe('report', tmp_path, '-o', tmp_path / 'report.html', status=2)


def test_no_rows_leaves_the_norms_out(etpe, tmp_path):
    run, = etpe.json('report', run_of(tmp_path / 'm'), '--no-rows')['runs']
    assert run['tables']['rows'][0]['norms'] is None


def test_first_values_of_slots_are_those_of_their_table_whatever_the_order_of_tables(
        etpe, tmp_path):
    run = run_of(tmp_path / 'm')
    slot = np.full_like(forged_job.VALUES, .1)
    slot[3] = 2
    forged_job.save(run, 8, slot=slot)
    config = config_of('census_training_1x1.pbtxt')
    del config.table_descriptor[2:], config.feature_descriptor[2:]
    for table, name in zip(config.table_descriptor, ('t', 'a')):
        table.name, table.vocabulary_size, table.dimension = name, 11, 3
    table.optimization_parameters.stochastic_gradient_descent.SetInParent()
    (run / 'of_run.graph.pb').write_bytes(wire.graph(wire.node(config.SerializeToString())))
    found, = etpe.json('report', run)['runs']
    assert [(table['name'], (table['norms'] or {}).get('untouched'))
            for table in found['tables']['rows']] == [('a', None), ('t', 10)]


def test_a_watched_page_is_written_anew_until_it_is_interrupted(tmp_path):
    run, page = run_of(tmp_path / 'm'), tmp_path / 'report.html'
    with groups.running([
            sys.executable, '-m', 'estimator_tpu_embedding', 'report', str(run), '-o', str(page),
            '--watch', '1'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process:
        until(page.exists, 'the first page')
        write(run, event(1, new_tag=2.), name='events.out.tfevents.2000.host')
        until(lambda: 'new_tag' in page.read_text(), 'the second page')
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and said.endswith('written\n') and 'Traceback' not in said


def test_the_library_of_charts_is_the_one_that_was_released():
    """uPlot 1.6.32 of the npm registry, MIT: dist/uPlot.iife.min.js, dist/uPlot.min.css, LICENSE.
    """
    parts = ROOT / 'estimator_tpu_embedding' / 'cli' / 'page_parts'
    assert {name: hashlib.sha256((parts / name).read_bytes()).hexdigest() for name in (
        'uplot.min.js', 'uplot.min.css', 'uplot.LICENSE')} == {
        'uplot.min.js': '19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f',
        'uplot.min.css': 'df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04',
        'uplot.LICENSE': '8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd'}


@pytest.mark.soak
@pytest.mark.parametrize('runs', [1, 2])
def test_chromium_shows_it_whole_at_each_width_light_and_dark(etpe, tmp_path, runs):
    chromium, npm = shutil.which('chromium'), shutil.which('npm')
    if not chromium or not npm:
        pytest.skip('needs the Debian packages chromium and npm')
    page_of(etpe, tmp_path, *[run_of(tmp_path / name, name=name * 60, hosts=hosts)
                              for name, hosts in [('a', 2), ('b', 64)][:runs]])
    groups.run([npm, 'install', '--silent', 'puppeteer-core@24', 'axe-core@4'], check=True,
               cwd=tmp_path)
    done = groups.run(['node', str(ROOT / 'tests' / 'harness' / 'look_at_page.mjs'), chromium,
                       str(tmp_path / 'report.html'), str(tmp_path)], check=True, cwd=tmp_path)
    assert done.stdout.strip() == ''
    assert len(list(tmp_path.glob('*-dark.png'))) == 3
    assert os.path.getsize(tmp_path / 'report.html') < 1.5e6
