"""Scans texts as files of a project, for tests of the doctor."""

import textwrap

from estimator_tpu_embedding.doctor import diagnose, sources, verdicts
from estimator_tpu_embedding.doctor.findings import Answer


def write(folder, **files):
    """Writes texts as modules; `pkg__init` is `pkg/__init__.py`, and `pkg__a` is `pkg/a.py`."""
    for name, text in files.items():
        parts = name.split('__')
        path = folder.joinpath(*('__init__' if part == 'init' else part for part in parts))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix('.py').write_text(textwrap.dedent(text))


def scanned(folder, **files):
    """Scans texts; returns `ScannedFile`s by the name of their file."""
    write(folder, **files)
    return {one.path.removeprefix(f'{folder}/'): one
            for one in diagnose.scan(sources.find([str(folder)]))}


def one(folder, text):
    """Scans one text."""
    return scanned(folder, main=text)['main.py']


def uses(file):
    """(line, path of the question) of all uses that no guard excuses."""
    return [(use.place.line, use.question.path) for use in file.uses if not use.is_guarded]


def missing(file, *there):
    """The paths that stop a program where names with these paths are there, and no others are."""
    answers = {}
    for use in file.uses:
        parts = use.question.path.split('.')
        paths = ['.'.join(parts[:end]) for end in range(1, len(parts) + 1)]
        lacking = next((one for one in paths if not any(
            f'{each}.'.startswith(f'{one}.') for each in there)), '')
        answers[use.question] = Answer(*[not lacking] * 4, lacking=lacking)
    found = {one for one, answer in answers.items() if answer.run}
    return [use.question.path for use in verdicts.settled(file.uses, answers, found)
            if not use.is_guarded and use.question not in found]
