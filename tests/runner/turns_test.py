"""Threads run one at a time, in turn, until they are done or one fails."""

import threading

import pytest

from estimator_tpu_embedding.runner.turns import Abandoned, Turns


def run(*works, most=60):
    """Runs a thread per function of (turns, own number); what they noted, in order, and turns."""
    turns, notes = Turns(len(works)), []

    def thread(own, work):
        try:
            turns.wait(own)
            for note in work:
                notes.append((own, note))
                turns.hand_over(own)
                turns.wait(own)
        except Abandoned:
            notes.append((own, 'abandoned'))
        except ArithmeticError as error:
            turns.fail(error)
        turns.hand_over(own, is_done=True)

    threads = [threading.Thread(target=thread, args=each) for each in enumerate(works)]
    for each in reversed(threads):  # The first turn is that of the first, whoever comes first.
        each.start()
    for each in threads:
        each.join(most)
        assert not each.is_alive()
    return notes, turns


@pytest.mark.parametrize('count', [1, 2, 9])
def test_each_has_its_turn_in_order_and_the_first_begins(count):
    notes, turns = run(*['ab'] * count)
    assert notes == [(own, note) for note in 'ab' for own in range(count)]
    assert turns.failure is None


def test_those_that_are_done_are_passed_over():
    notes, _ = run('abc', '', 'a', 'ab')
    assert notes == [(0, 'a'), (2, 'a'), (3, 'a'), (0, 'b'), (3, 'b'), (0, 'c')]


def failing(error, *before):
    yield from before
    raise error


def test_the_first_failure_stays_and_all_others_give_up():
    first = ZeroDivisionError()
    notes, turns = run('abc', failing(first, 'a'), failing(OverflowError(), 'a', 'b'), 'ab')
    assert turns.failure is first
    assert notes[:5] == [(0, 'a'), (1, 'a'), (2, 'a'), (3, 'a'), (0, 'b')]
    assert sorted(notes[5:]) == [(own, 'abandoned') for own in (0, 2, 3)]


def test_who_waits_after_a_failure_gives_up_at_once():
    turns = Turns(2)
    turns.fail(KeyError('first'))
    turns.fail(KeyError('second'))
    assert turns.failure.args == ('first',)
    for own in range(2):
        with pytest.raises(Abandoned):
            turns.wait(own)
