"""Small faults of Python source: a comparison turned, a number off by one, a call left out (for `make mutants`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
}


class Mutant(NamedTuple):
    """One fault: the span of a file's text, and what stands there instead."""

    path: str
    line: int
    text: str
    """The line of source in which the fault begins."""
    start: int
    stop: int
    old: str
    new: str
    first: int
    last: int
    """The lines that a test must run to notice: those of the fault, or all that use what is set when a file is read."""

    @property
    def room(self) -> str:
        parts = Path(self.path).parts
        return parts[1] if len(parts) > 2 else "bbn"

    @property
    def key(self) -> str:
        """The fault without its place in the file, which moves when lines are added above."""
        return f"{self.path}: {self.text}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """Every small fault of a file."""
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()
    name = path.relative_to(root).as_posix()

    lines = text.splitlines()

    def fault(node: ast.AST, new: str, start: int | None = None, stop: int | None = None) -> Mutant:
        begin = starts[node.lineno - 1] + node.col_offset if start is None else start  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset if stop is None else stop  # type: ignore[attr-defined]
        at = data[:begin].count(b"\n") + 1
        return Mutant(name, at, lines[at - 1].strip(), begin, end, data[begin:end].decode(), new, *reach)

    def between(left: ast.expr, right: ast.expr) -> tuple[int, int]:
        return starts[left.end_lineno - 1] + left.end_col_offset, starts[right.lineno - 1] + right.col_offset  # type: ignore[operator]

    for node, reach in code_nodes(ast.parse(text), (1, len(lines))):  # noqa: B007 (`fault` reads the reach)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            start, stop = between(node.left, node.comparators[0])
            if b"(" not in data[start:stop] and b")" not in data[start:stop]:
                yield fault(node, f" {COMPARISONS[type(node.ops[0])]} ", start, stop)
        elif (
            isinstance(node, ast.BinOp)
            and type(node.op) in ARITHMETIC
            and not isinstance(node.left, ast.Constant | ast.JoinedStr)
        ):
            start, stop = between(node.left, node.right)
            if data[start:stop].strip().decode() in {"+", "-", "*", "/", "//", "%", "**"}:
                yield fault(node, f" {ARITHMETIC[type(node.op)]} ", start, stop)
        elif isinstance(node, ast.BoolOp):
            start, stop = between(node.values[0], node.values[1])
            if data[start:stop].strip() in {b"and", b"or"}:
                yield fault(node, " or " if isinstance(node.op, ast.And) else " and ", start, stop)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield fault(node, "", None, starts[node.operand.lineno - 1] + node.operand.col_offset)
        elif isinstance(node, ast.Constant) and type(node.value) in {int, float, bool}:
            yield fault(node, str(not node.value if isinstance(node.value, bool) else node.value + 1))
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield fault(node.test, f"(not ({ast.unparse(node.test)}))")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield fault(node, "pass")


def code_nodes(
    node: ast.AST, reach: tuple[int, int], inside: bool = False
) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """The nodes that run, without annotations, types, and what only a type checker reads; each with its reach.

    The reach of what runs in a function is the lines of its statement, without those of statements in it. A default
    value or a decorator reaches the whole function, and what runs when a file is read reaches the whole file.
    """
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.arg | ast.JoinedStr | ast.Raise):  # messages: tests of their own ask for them
        return
    body = getattr(node, "body", None)
    body = body if isinstance(body, list) else []
    if inside and isinstance(node, ast.stmt):
        reach = node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    yield node, reach
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for part in (*node.decorator_list, node.args):
            yield from code_nodes(part, (body[0].lineno, body[-1].end_lineno))
        for part in body:
            yield from code_nodes(part, reach, inside=True)
    elif isinstance(node, ast.AnnAssign):
        if node.value:
            yield from code_nodes(node.value, reach, inside)
    else:
        zipped = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"
        for part in ast.iter_child_nodes(node):
            if zipped and isinstance(part, ast.keyword):  # strict=True asks for what always holds
                continue
            yield from code_nodes(part, reach, inside)
