"""A script that lacks a package of an extra ends with the line that installs it."""

from harness.processes import run_etpe


def hint_of(tmp_path, code):
    """The last line of a script that fails, without what the doctor may add in time."""
    (tmp_path / 'job.py').write_text(code)
    done = run_etpe('run', tmp_path / 'job.py', loaded=True)
    assert done.returncode == 1
    return [line for line in done.stderr.splitlines()
            if not line.startswith('[etpe] "etpe doctor ')][-1]


def test_a_missing_tfrs_is_named_with_the_extra(tmp_path):
    # Python reports a module of None as it reports one that is not there.
    assert hint_of(tmp_path, 'import sys\nsys.modules["tensorflow_recommenders"] = None\n'
                   'import tensorflow_recommenders as tfrs\n') == (
        '[etpe] TensorFlow Recommenders is not installed: pip install ".[tfrs]" in the checkout '
        'of this package, or pip install tensorflow-recommenders')


def test_another_missing_package_gets_no_such_line(tmp_path):
    assert hint_of(tmp_path, 'import tensorflow_recommenders_of_nobody\n') == (
        "ModuleNotFoundError: No module named 'tensorflow_recommenders_of_nobody'")
