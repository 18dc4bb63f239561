"""Runs the commands of `etpe` within the process of a test."""

import json
import pathlib
import re

from google.protobuf import text_format

from estimator_tpu_embedding.cli.config_view import view_of
from estimator_tpu_embedding.cli.etpe_docs import topics
from estimator_tpu_embedding.cli.main import main
from estimator_tpu_embedding.proto.codec import Config
from estimator_tpu_embedding.proto.reading import Source

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / 'golden' / 'configs'
SEVERAL = 'several_optimizers_2x2.pbtxt'


def config_of(name=SEVERAL):
    """A golden config, to be changed by a test."""
    return text_format.Parse((CONFIGS / name).read_text(), Config())


def view(config):
    """A config as the commands show it."""
    return view_of(Source(where='here', config=config))


def saved(tmp_path, config, name='config.pb'):
    """The path of a config as binary."""
    path = tmp_path / name
    path.write_bytes(config.SerializeToString())
    return path


def members_of(command):
    """What the document about reports says of a command and of all."""
    head, *parts = topics()['reports'].read_text().split('\n## etpe ')
    part, = (one for one in parts if one.startswith(f'{command}\n'))
    return set(re.findall(r'`(\w+)`', head + part))


class Etpe:
    """Runs commands and checks their exit status."""

    def __init__(self, capsys):
        self._capsys = capsys

    def __call__(self, *arguments, status=0):
        """Returns the output of a command; with status 2, its errors."""
        try:
            got = main([str(argument) for argument in arguments])
        except SystemExit as error:  # argparse ends so where the usage is wrong.
            got = error.code
        printed = self._capsys.readouterr()
        assert got == status, printed
        assert (printed.out == '') == (status == 2)
        return printed.err if status == 2 else printed.out

    def json(self, *arguments, status=0, form='--format'):
        """The report for programs; `form` is the flag of the command that asks for it."""
        report = json.loads(self(*arguments, form, 'json', status=status))
        lists = [value for value in report.values() if isinstance(value, list)]
        of_parts = {name for several in lists for one in several if isinstance(one, dict)
                    for name in one}
        unsaid = {*report, *of_parts} - members_of(report['command'])
        assert not unsaid, unsaid
        return report
