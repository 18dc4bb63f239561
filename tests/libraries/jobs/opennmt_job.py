"""The import of OpenNMT-tf 1.25."""

import opennmt

print('imported', opennmt.models.SequenceToSequence.__name__)
