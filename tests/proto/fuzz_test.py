"""P22: whatever bytes come, a config comes out or an error that a tool can print."""

import pathlib
import random
import re

import pytest
from google.protobuf import text_format
from harness.wire import graph, node
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.errors import ConfigError, UnreadableConfigError, UnsupportedError
from estimator_tpu_embedding.proto import reading
from estimator_tpu_embedding.proto.codec import Config, config_to_plan, plan_to_config

GOLDENS = sorted((pathlib.Path(__file__).parent.parent / 'golden' / 'configs').glob('*.pbtxt'))
MUTATIONS = 400  # of each golden and form; 100,000 in all have been run by hand
NASTY = [b'\0', b'\n', b'\x0b', b'\x1b]52;c;', b'\xff', b'\xe2\x80\xae', b'{', b'}', b'<', b'"',
         b"'", b'[', b'#', b'\\', b'-1', b'nan', b'inf', b'1e999', b'9' * 30, b'99', b'../', b'//',
         b'config', b'node {', b'\x80' * 9, b'\x0a\x00', b'\x7f', b'input_shape: 2147483647\n',
         b'table_id: -1\n', b'[type.googleapis.com/x.Y] {}']


def forms(path):
    config = text_format.Parse(path.read_text(), Config())
    content = config.SerializeToString()
    return {'text': path.read_bytes(), 'binary': content, 'graph': graph(node(content)),
            'text graph': b'node { op: "TPU" attr { key: "config" value { s: "%s" } } }' % (
                ''.join(f'\\{byte:03o}' for byte in content).encode())}


def mutated(content, chance):
    """Content with one to five pieces changed, doubled, dropped or put in."""
    content = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(content) + 1)
        end = min(len(content), at + chance.choice([0, 1, 1, 2, 8, 200]))
        content[at:end] = chance.choice([
            b'', chance.choice(NASTY), chance.randbytes(1), content[at:end] * 2,
            bytes(byte ^ 1 << chance.randrange(8) for byte in content[at:end])])
    return bytes(content)


def plan_of(config):
    """What becomes of a message: `'plan'` or the error's class; all that is said can be printed."""
    try:
        plan = config_to_plan(config)
    except (ConfigError, UnsupportedError) as error:
        assert all(str(problem).isprintable() for problem in error.problems)
        return type(error).__name__
    assert plan_to_config(plan).ByteSize() > 0
    return 'plan'


def outcome(content):
    """What becomes of some bytes: that of their first config, or the code of the error."""
    try:
        done = plan_of(reading.read_bytes(content, 'file')[0].config)
    except UnreadableConfigError as error:
        done = error.code
        assert re.fullmatch('E48[0-9]', done) and len(error.problems) == 1
        assert str(error).isprintable() and len(str(error)) < 500
    return done


@pytest.mark.parametrize('path', GOLDENS, ids=lambda path: path.stem)
@pytest.mark.parametrize('form', ['text', 'binary', 'graph', 'text graph'])
def test_p22_mutated_configs_are_read_or_refused(path, form):
    content = forms(path)[form]
    assert outcome(content) == 'plan'
    chance = random.Random(f'{path.stem} {form}')
    outcomes = {outcome(mutated(content, chance)) for _ in range(MUTATIONS)}
    assert 'plan' in outcomes and len(outcomes) > 2  # It reaches more than one door.


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.binary(), st.text().map(str.encode), st.lists(
    st.one_of(st.sampled_from(NASTY), st.binary(max_size=4)), max_size=30).map(b''.join)))
@example(b'mode: 1')
def test_p22_random_bytes_are_read_or_refused(content):
    outcome(content)


INTEGERS = st.one_of(st.sampled_from([-2**63, -2**31, -1, 0, 1, 2, 2**31 - 1, 2**31, 2**63 - 1]),
                     st.integers(-2**63, 2**63 - 1))
NAMES = st.one_of(st.sampled_from(  # P11, P12
    ['t', '../../etc/x', '/abs', 'a//b', 'a/../b', '\x1b]52;c;', 'a\nb', '\u202eb', '\0', '',
     'x' * 5000, 'x' * 998]), st.text(max_size=20))


def draw_message(draw, message, chance):
    """Sets some of the fields of a message, and of those below it, to values of their type."""
    for one in message.DESCRIPTOR.fields:
        if draw(st.floats(0, 1)) > chance:
            continue
        many = isinstance(getattr(type(message)(), one.name), (list, tuple)) or hasattr(
            getattr(message, one.name), 'extend')
        if one.message_type is not None:
            for _ in range(draw(st.integers(1, 3)) if many else 1):
                below = getattr(message, one.name).add() if many else getattr(message, one.name)
                below.SetInParent()
                draw_message(draw, below, .5)
        elif many:
            getattr(message, one.name).extend(value_of(draw, one) for _ in range(
                draw(st.integers(0, 3))))
        else:
            setattr(message, one.name, value_of(draw, one))


def value_of(draw, field_descriptor):
    """A value for a field that is not a message: P05, P06, P07."""
    default = field_descriptor.default_value
    if isinstance(default, bool):
        return draw(st.booleans())
    if isinstance(default, (str, bytes)):
        name = draw(NAMES)
        return name if isinstance(default, str) else name.encode()
    if isinstance(default, float):
        return draw(st.one_of(st.floats(width=32), st.sampled_from([0., 1., -1.])))
    number = draw(INTEGERS)
    # Enums and most integers have 32 bits.
    return number if field_descriptor.type == 3 else (number + 2**31) % 2**32 - 2**31


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_p22_messages_of_arbitrary_values_are_plans_or_say_why_not(data):
    config = Config()
    draw_message(data.draw, config, .9)
    plan_of(config)
    if config.ListFields():
        outcome(config.SerializeToString())
        outcome(text_format.MessageToString(config).encode())
