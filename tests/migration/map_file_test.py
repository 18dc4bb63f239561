import os
import re

import pytest
from harness.source import PACKAGE

from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.migration import map_file
from estimator_tpu_embedding.migration.map_file import parse


def renamed(text, *names):
    """The new names by the map in a text; `None` where no line counts, or one drops the name."""
    found = parse(text)
    rules = [found.rule_for(name) for name in names]
    return [rule.renamed(name) if rule is not None else None for rule, name in zip(rules, names)]


def said(text):
    """The messages about a text that is no map."""
    with pytest.raises(ConfigError) as caught:
        parse(text, 'm')
    assert {problem.code for problem in caught.value.problems} == {'E651'}
    return [str(problem) for problem in caught.value.problems]


def test_exact_lines_come_before_expressions_and_the_first_expression_before_others():
    text = 're a/(.*) -> first/\\1\nre a/.* -> second\na/x -> exact\n'
    assert renamed(text, 'a/x', 'a/y', 'b') == ['exact', 'first/y', None]


def test_an_expression_must_fit_all_of_a_name_and_its_groups_may_have_names():
    text = r're layer_(\d+)/(?P<what>kernel|bias) -> h.\1/\g<what>'
    assert renamed(text, 'layer_12/bias', 'my/layer_12/bias', 'layer_12/bias/Adam') == [
        'h.12/bias', None, None]


def test_drop_table_and_power_are_told_apart():
    found = parse('drop a\ndrop re b.*\ntable t -> user\ntable re (\\w+)/emb -> \\1\npower p 0.9')
    assert [(rule.old, rule.new, rule.is_table, rule.pattern is not None)
            for rule in found.rules] == [
        ('a', None, False, False), ('b.*', None, False, True), ('t', 'user', True, False),
        (r'(\w+)/emb', r'\1', True, True)]
    assert found.powers == (('p', 0.9),)


@pytest.mark.parametrize('content', [
    b'a -> b\nc -> d', b'\xef\xbb\xbfa -> b\r\n\r\n# x -> y\r\nc -> d\r\n',
    b'\ta\t->\tb  \r  c   ->   d\r'])
def test_windows_and_tabs_and_marks_of_utf_8_make_no_difference(tmp_path, content):
    (tmp_path / 'map').write_bytes(content)
    found = map_file.read(str(tmp_path / 'map'))
    assert [(rule.old, rule.new) for rule in found.rules] == [('a', 'b'), ('c', 'd')]
    assert found.rules[1].where.endswith('map:2') or content[:1] != b'a'


@pytest.mark.parametrize('line, why', [
    ('a', 'no arrow'), ('a->b', 'no arrow'), ('a -> b -> c', 'two of them'),
    ('-> b', 'no arrow'), ('a ->', 'no arrow'), ('re\t(x -> b', 'no regular expression'),
    ('a -> ?', r'in the place of \?'), ('drop a -> b', '"drop" has one name'),
    ('drop table a', '"drop" is enough'), ('re a( -> b', 'no regular expression'),
    ('re a -> \\1', 'invalid group reference 1'), ('re (a) -> \\g<x>', 'unknown group name'),
    ('re (a) -> \\d', 'bad escape'), ('power p 1', 'BETA'),
    ('power p', 'not enough'), ('power p x', 'could not convert'), ('power p nan', 'BETA'),
    ('re ' + '(' * 500 + ')' * 500 + ' -> b', 'no regular expression'),
    ('re a{99999999999} -> b', 'no regular expression')])
def test_e651_a_line_that_cannot_be_read_is_named_with_its_number(line, why):
    message, = said(f'x -> y\n\n{line}')
    assert message.startswith('E651 m:3: a line must be "OLD -> NEW"') and re.search(why, message)


def test_e651_names_all_lines_at_once_but_not_thousands():
    assert len(said('a\nb\nc -> d\nre ( -> e')) == 3
    assert len(said('a\n' * 1000)) == 50


def test_e651_a_name_or_expression_with_two_lines():
    messages = said('a -> b\nre x.* -> y\ndrop a\ndrop re x.*')
    assert [message.split(':')[1] for message in messages] == ['3', '4']
    assert '"a", which m:1 names too' in messages[0]


def test_an_expression_fits_no_name_of_more_than_250_characters():
    assert renamed('re a* -> b', 'a' * 250, 'a' * 251, 'a' * 2**16) == ['b', None, None]
    assert renamed(f'{"a" * 2**16} -> b', 'a' * 2**16) == ['b']


def test_a_line_is_idle_if_it_fits_no_name_but_not_if_an_earlier_line_took_its_names():
    found = parse('a -> b\nre a -> c\nre x -> d\ndrop y')
    assert [rule.old for rule in found.idle(['a'])] == ['x', 'y']


@pytest.mark.parametrize('make, why', [
    (lambda path: path.mkdir(), 'a directory'), (lambda path: os.mkfifo(path), 'a pipe'),
    (lambda path: None, 'No such file'), (lambda path: path.write_bytes(b'a -> \xff'), 'decode'),
    (lambda path: path.write_bytes(b'#' * (2**26 + 1)), 'more than 67,108,864 bytes')])
def test_e651_a_map_that_is_no_text_file(tmp_path, make, why):
    path = tmp_path / 'map'
    make(path)
    with pytest.raises(ConfigError, match=f'E651 map .*must be a readable text file.*{why}'):
        map_file.read(str(path))


def test_the_map_in_the_guide_does_what_its_comments_say():
    text, = re.findall(r'^```map\n(.*?)^```$', (
        PACKAGE / 'docs' / 'migrating.md').read_text(), re.MULTILINE | re.DOTALL)
    assert renamed(text, 'dense/kernel', 'dense_1/bias', 'bert/encoder/layer_11/output/dense/bias',
                   'input_layer/item_embedding/embedding_weights') == [
        'model/hidden/kernel', 'model/layer_with_weights-1/bias',
        'model/encoder/layers/11/output/dense/bias', 'item']
    found = parse(text)
    assert found.rule_for('bert/w/ExponentialMovingAverage').new is None
    assert found.rule_for('input_layer/item_embedding/embedding_weights').is_table
