"""Gives MkDocs what no file holds: README as the first page, the API, the pictures."""

import importlib.util
import pathlib
import re
import sys
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.append(str(pathlib.Path(__file__).parent))

import pictures  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = 'estimator_tpu_embedding'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leaves the Markdown files of the package, and adds the pages that are made."""
    sys.path.insert(0, str(ROOT))
    package = importlib.import_module(PACKAGE)
    readme = re.sub(rf'\]\({PACKAGE}/', '](', (ROOT / 'README.md').read_text())
    members = '\n\n'.join(f'::: {PACKAGE}.{package._HOMES[name]}.{name}'
                          for name in package.__all__)
    made = {
        'index.md': readme,
        'reference.md': f'# API\n\nWhat `{PACKAGE}` has by name. The names of the original are '
                        f'also where it had them, after `install()`.\n\n{members}\n'}
    kept = [file for file in files
            if file.src_dir != config.docs_dir or file.src_uri.endswith('.md')]
    return Files([*kept, *(File.generated(config, name, content=text)
                           for name, text in made.items())])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draws the pictures of a page, and lets links name a code."""
    markdown = re.sub(r'(?m)^\| ([EWI]\d{3}) \|', r'| <a id="\1"></a>`\1` |', markdown)
    return re.sub('<!-- picture: (\\w+) -->', lambda found: pictures.PICTURES[found[1]](), markdown)


class Examples(griffe.Extension):
    """Makes Markdown of a docstring: an example is a block of code, and `>= 0` is no quotation."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Changes the docstring of one object."""
        if obj.docstring:
            text = re.sub(r'(?m)^( +(?:\w+: )?)>(?!>)', r'\1\\>', obj.docstring.value)
            obj.docstring.value = re.sub(r'(?m)^>>> (?:.+\n?)+', '```pycon\n\\g<0>\n```\n', text)
