"""The examples of `etpe explain` have the finding that they explain, and lose it by the remedy."""

import pytest

from estimator_tpu_embedding.cli.codes.examples import EXAMPLES
from estimator_tpu_embedding.doctor import diagnose

HEAD = 'import collections\nimport numpy as np\nimport tensorflow as tf\n'
TEXTS = ('E101', 'E102', 'E103', 'E105', 'E113', 'E121', 'E122', 'E123', 'E131', 'W201', 'W202',
         'W203', 'W217', 'W218', 'W219', 'I301', 'I302', 'I303', 'I304', 'I305')
"""Codes whose examples are whole programs, once TensorFlow is imported."""


@pytest.mark.soak
def test_each_example_has_the_code_before_the_remedy_and_not_after_it(tmp_path):
    for code in TEXTS:
        for name, text in zip(('before', 'after'), EXAMPLES[code]):
            (tmp_path / f'{code}_{name}.py').write_text(HEAD + text)
    found = {(finding.place.path, finding.code)
             for finding in diagnose.diagnose([str(tmp_path)]).findings if finding.place}
    for code in TEXTS:
        assert (str(tmp_path / f'{code}_before.py'), code) in found
        assert (str(tmp_path / f'{code}_after.py'), code) not in found
