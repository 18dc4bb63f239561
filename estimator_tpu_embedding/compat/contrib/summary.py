"""`tf.contrib.summary`: summaries that operations of the graph write, each with its step."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ... import _tf
from . import same

_module = _tf.modules_of_contrib()['summary_ops_v2']


def create_file_writer(logdir: str | None, max_queue: Any = None, flush_millis: Any = None,
                       filename_suffix: Any = None, name: str | None = None) -> Any:
    """Returns the writer to a directory; each directory has only one writer.

    Args:
      logdir: the directory; `None` gives a writer that writes nothing.
      max_queue: the most summaries that wait to be written, 10 if `None`.
      flush_millis: the longest time that they wait, 120,000 ms if `None`.
      filename_suffix: suffix of the file, `'.v2'` if `None`.
      name: calls with the same name share a writer; the name of the directory if `None`.
    """
    with tf.control_dependencies(None):  # It opens before the first step, also of a host_call.
        return _module.create_file_writer(logdir, max_queue, flush_millis, filename_suffix, name)


NAMES: dict[str, Any] = {name: getattr(_module, name) for name in (
    'always_record_summaries audio eval_dir flush generic histogram image import_event '
    'never_record_summaries record_summaries_every_n_global_steps scalar '
    'summary_writer_initializer_op').split()}
NAMES |= {**same.names_of('summary'), 'graph': _module.graph_v1,
          'create_file_writer': create_file_writer,
          'create_summary_file_writer': create_file_writer}
