"""Runs the commands of `etpe` within the process of a test."""

import json
import pathlib

from google.protobuf import text_format

from estimator_tpu_embedding.cli.config_view import view_of
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
        return json.loads(self(*arguments, form, 'json', status=status))
