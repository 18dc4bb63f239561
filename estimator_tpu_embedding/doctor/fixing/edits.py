"""Where LibCST sees names and imports in a text, and how pieces of the text are replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import libcst
from libcst import metadata

Statement = libcst.Import | libcst.ImportFrom
_LINE_END = re.compile(r'\r\n|\n|\r')


class Edit(NamedTuple):
    """A piece of text to be replaced: from `begin` to before `end`, in characters."""

    begin: int
    end: int
    new: str


class Imported(NamedTuple):
    """A name in an import statement.

    Attributes:
      statement: the statement.
      alias: the name, as one of `statement.names`.
      is_alone: whether the line has no other statement.
    """

    statement: Statement
    alias: libcst.ImportAlias
    is_alone: bool


class Text:
    """A Python file with the places of its names.

    Attributes:
      chains: each `a.b.c` that is read, and each `a`, by first line and column, last line and the
        column after it; all count from 1.
      imports: names of import statements by line and column.
    """

    def __init__(self, text: str):
        """Parses a text.

        Raises:
          libcst.ParserSyntaxError: if LibCST cannot read it.
        """
        self._text = text
        self._lines = [0, *(match.end() for match in _LINE_END.finditer(text))]
        first = _LINE_END.search(text)
        self._newline = first[0] if first else '\n'
        finder = _Finder()
        metadata.MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True).visit(finder)
        self.chains = finder.chains
        self.imports = finder.imports
        self._ranges = finder.ranges

    def piece(self, node: libcst.CSTNode, new: str) -> Edit:
        """Replaces a node, without the parentheses around it."""
        where = self._ranges[node]
        return Edit(self._offset(where.start), self._offset(where.end), new)

    def indent_of(self, node: libcst.CSTNode) -> str:
        """Returns what stands before a node on its line."""
        start = self._ranges[node].start
        return self._text[self._lines[start.line - 1]:self._offset(start)]

    def below(self, node: libcst.CSTNode, lines: Sequence[str]) -> Edit:
        """Adds lines after the last line of a node."""
        return self.after(self._ranges[node].end.line, lines)

    def after(self, line: int, lines: Sequence[str]) -> Edit:
        """Adds lines after a line, which may be 0, for the beginning of the text."""
        if line < len(self._lines):
            at = self._lines[line]
            return Edit(at, at, ''.join(one + self._newline for one in lines))
        at = len(self._text)  # The last line has no end.
        return Edit(at, at, ''.join(self._newline + one for one in lines))

    def edited(self, edits: Iterable[Edit]) -> str:
        """Returns the text with all edits, which do not overlap."""
        pieces, end = [], 0
        for edit in sorted(edits):
            pieces += [self._text[end:edit.begin], edit.new]
            end = edit.end
        return ''.join([*pieces, self._text[end:]])

    def _offset(self, position: metadata.CodePosition) -> int:
        return self._lines[position.line - 1] + position.column


class _Finder(libcst.CSTVisitor):
    """Collects the nodes that a fix may replace."""

    METADATA_DEPENDENCIES = (metadata.PositionProvider, metadata.ExpressionContextProvider)

    def __init__(self) -> None:
        super().__init__()
        self.chains: dict[tuple[int, int, int, int], libcst.Attribute | libcst.Name] = {}
        self.imports: dict[tuple[int, int], Imported] = {}
        self.ranges: dict[libcst.CSTNode, metadata.CodeRange] = {}
        self._alone: libcst.CSTNode | None = None

    def visit_SimpleStatementLine(self, node: libcst.SimpleStatementLine) -> None:
        self._alone = node.body[0] if len(node.body) == 1 else None

    def visit_Attribute(self, node: libcst.Attribute) -> None:
        self._add(node)

    def visit_Name(self, node: libcst.Name) -> None:
        self._add(node)

    def visit_Import(self, node: libcst.Import) -> bool:
        return self._add_import(node, node.names)

    def visit_ImportFrom(self, node: libcst.ImportFrom) -> bool:
        return self._add_import(
            node, () if isinstance(node.names, libcst.ImportStar) else node.names)

    def _add(self, node: libcst.Attribute | libcst.Name) -> None:
        context = self.get_metadata(metadata.ExpressionContextProvider, node, None)
        if context is metadata.ExpressionContext.LOAD:
            where = self._range(node)
            self.chains[where.start.line, where.start.column + 1,
                        where.end.line, where.end.column + 1] = node

    def _add_import(self, node: Statement, names: Iterable[libcst.ImportAlias]) -> bool:
        self._range(node)
        for alias in names:
            start = self._range(alias).start
            self.imports[start.line, start.column + 1] = Imported(
                node, alias, node is self._alone)
        return False

    def _range(self, node: libcst.CSTNode) -> metadata.CodeRange:
        found: metadata.CodeRange = self.get_metadata(metadata.PositionProvider, node)
        self.ranges[node] = found
        return found
