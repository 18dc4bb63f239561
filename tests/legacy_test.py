"""TF_CONFIG, which the nightly reads: for our RunConfig and that of plain Estimators."""

import json

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import ConfigError

RUN_CONFIGS = pytest.mark.parametrize('run_config', [
    lambda: ete.RunConfig(), lambda: _legacy.load().RunConfig()], ids=['ours', 'plain'])


@RUN_CONFIGS
@pytest.mark.parametrize('text, expected', [
    ('[' * 100_000, 'RecursionError: '), ('{"a":' * 200_000, 'RecursionError: '),
    ('x' * 10**8, '100,000,000 characters.'), ('{"cluster"', 'JSONDecodeError: '),
    ('{"a": ' + '9' * 5_000 + '}', 'ValueError: '), ('', 'JSONDecodeError: '),
    ('"\\u001b]52;"', '"\\\\u001b]52;".'), *[(text, f'{text}.') for text in (
        '[1]', 'null', '{"cluster": 5}', '{"cluster": {"worker": [5]}}',
        '{"cluster": {"worker": {"x": "a:1"}}}', '{"task": []}', '{"task": {"index": null}}',
        '{"task": {"type": 3}}')]],
    ids=lambda value: value[:20])
def test_p21_what_cannot_be_read_is_refused_by_the_name_of_the_variable(
        monkeypatch, run_config, text, expected):
    monkeypatch.setenv('TF_CONFIG', text)
    with pytest.raises(ConfigError) as caught:
        run_config()
    assert str(caught.value).startswith('E469 TF_CONFIG: it must hold an object of JSON, at most ')
    assert f'"index": 0}}}}; got {expected}' in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_the_nightly_has_words_for_it_says_itself(monkeypatch):
    monkeypatch.setenv('TF_CONFIG', json.dumps(
        {'cluster': {'chief': {'0': 'a:1'}}, 'task': {'type': 'chief', 'index': '7'}}))
    with pytest.raises(ValueError, match='7 is not a valid task_id'):
        ete.RunConfig()


@RUN_CONFIGS
def test_a_large_cluster_is_read(monkeypatch, run_config):
    workers = [f'a-rather-long-name-of-a-worker-{number}.of.some.zone:2222'
               for number in range(4_096)]
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': {'chief': ['[::1]:1'], 'worker': workers},
        'task': {'type': 'worker', 'index': 4_095}}))
    assert run_config().num_worker_replicas == 4_097
