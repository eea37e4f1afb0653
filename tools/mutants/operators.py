"""Edit the source of one module in small ways that a test should notice.

Every operator returns text edits of the original bytes, so that lines keep their numbers and a mutant prints as a diff.
A statement is dropped by `if False:` in front of it: the names that it binds stay local and a generator stays one.
"""

import ast
import itertools
import re
from dataclasses import dataclass

BOUNDARIES = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}
EMPTY = {"bool": "not", "str": '""', "int": "0", "float": "0.0", "list": "[]", "tuple": "()", "dict": "{}"}
LOGGERS = {"log", "logger", "LOG", "LOGGER", "_log", "_LOG", "logging", "warnings"}
UNSEEN_KEYWORDS = {"frozen", "slots", "kw_only", "gc", "weakref", "strict", "maxsize", "stacklevel", "eq"}
"""Keywords whose value no caller can observe, or only by misuse."""


@dataclass(frozen=True)
class Edit:
    """One replacement in the bytes of a module, and where it belongs."""

    operator: str
    start: int
    end: int
    text: str
    line: int
    """The line of the edit."""
    statement_line: int
    """The first line of the statement, or of the handler's body, that must run for the edit to matter."""
    function: str
    """The qualified name of the function; empty for a definition, which runs at import."""
    names: tuple[str, ...]
    """The names that a definition binds."""


def edits_of(source: bytes) -> list[Edit]:
    """Return all edits of a module, in the order of its text."""
    visitor = _Visitor(source)
    visitor.visit(ast.parse(source))
    return sorted(visitor.edits, key=lambda edit: (edit.start, edit.end, edit.operator, edit.text))


def apply(source: bytes, edit: Edit) -> bytes:
    """Return the mutated source."""
    return source[: edit.start] + edit.text.encode() + source[edit.end :]


class _Visitor(ast.NodeVisitor):
    """Walk a module with the function, the statement and the names that enclose each node."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.edits: list[Edit] = []
        self.scopes: list[str] = []
        self.function = ""
        self.returns: ast.expr | None = None
        self.bound: set[str] = set()
        self.statement_line = 1
        self.names: tuple[str, ...] = ()

    # Places and texts

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where the text of a node begins and ends."""
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]  # only nodes with a place
        end = self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]  # come here
        return start, end

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.source[start:end].decode()

    def add(self, operator: str, node: ast.AST, text: str, span: tuple[int, int] | None = None) -> None:
        """Note an edit, unless the result is no Python or the same program."""
        start, end = span or self.span(node)
        line = self.source.count(b"\n", 0, start) + 1
        edit = Edit(operator, start, end, text, line, self.statement_line, self.function, self.names)
        self.edits.append(edit)

    def exchange_between(self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """Replace an operator that stands between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:end].decode()
        pattern = rf"(?<![\w<>=!*/]){re.escape(old)}(?![\w<>=*/])"
        found = re.search(pattern, re.sub(r"#[^\n]*", lambda comment: " " * len(comment.group()), gap))
        if found:
            self.add(operator, left, new, (start + found.start(), start + found.end()))

    # Scopes

    def visit(self, node: ast.AST) -> None:
        """Keep the statement's line while its parts are visited."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before, names = self.statement_line, self.names
        self.statement_line = node.lineno
        if not self.function:
            self.names = _names_of(node) or names
        super().visit(node)
        self.statement_line, self.names = before, names

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Enter a class. Its fields are definitions."""
        outside, self.function = self.function, ""
        self.scopes.append(node.name)
        for part in (*node.keywords, *node.body):
            self.visit(part)
        self.scopes.pop()
        self.function = outside

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Enter a function. Its defaults belong to the enclosing scope, its annotations to nobody."""
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        if _is_declaration(node):
            return
        saved = self.function, self.returns, self.bound
        self.scopes.append(node.name)
        self.function = ".".join(self.scopes)
        self.returns, self.bound = (
            node.returns,
            {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)},
        )
        self.scopes.append("<locals>")
        for statement in node.body:
            self.visit(statement)
        del self.scopes[-2:]
        self.function, self.returns, self.bound = saved

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name that ast calls

    # Statements

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        """Negate the condition of an if, a while or a conditional expression."""
        if "TYPE_CHECKING" in self.text(node.test) or "__name__" in self.text(node.test):
            return
        self.negate(node.test)
        self.generic_visit(node)

    visit_While = visit_If  # noqa: N815
    visit_IfExp = visit_If  # noqa: N815

    def negate(self, test: ast.expr) -> None:
        """Negate a condition. `not x` and `True` have operators of their own."""
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not is_not and not isinstance(test, ast.Constant):
            self.add("negate", test, f"not ({self.text(test)})")

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Negate the filters of a comprehension."""
        for test in node.ifs:
            self.negate(test)
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone: they narrow types."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave f-strings alone: before Python 3.12 their parts have no places."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value of an annotated assignment."""
        if node.value is None:
            return
        if isinstance(node.target, ast.Attribute | ast.Subscript):
            self.drop("drop assignment", node)
        elif isinstance(node.target, ast.Name):
            self.bound.add(node.target.id)
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Drop what changes state: attributes, items and names that have a value already."""
        changed = [
            target for target in node.targets if not isinstance(target, ast.Name) or target.id in self.bound
        ]
        is_state = any(isinstance(target, ast.Attribute | ast.Subscript | ast.Name) for target in changed)
        if self.function and is_state:
            self.drop("drop assignment", node)
        for target in node.targets:
            self.bound |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Exchange += and -=, drop the others."""
        old, new = ARITHMETIC.get(type(node.op), ("", ""))
        if old in {"+", "-", "|", "&"} and not _is_text(node.value):
            self.exchange_between("arithmetic", node.target, node.value, old + "=", new + "=")
        self.drop("drop assignment", node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Drop a call or a yield that stands alone."""
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call) and self.function and not _is_log(value):
            self.drop("drop call", node)
        elif isinstance(value, ast.Yield | ast.YieldFrom):
            self.drop("drop yield", node)
        if not isinstance(value, ast.Constant) and not (isinstance(value, ast.Call) and _is_log(value)):
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Drop a raise. What is only said in its message stays."""
        if self.function:
            self.drop("drop raise", node)

    def drop(self, operator: str, node: ast.stmt) -> None:
        """Make a statement dead, unless another one shares its line."""
        start, _ = self.span(node)
        if not self.source[self.starts[node.lineno - 1] : start].strip():
            self.add(operator, node, "if False: ", (start, start))

    def visit_Continue(self, node: ast.Continue) -> None:
        """Exchange continue by break."""
        self.add("continue/break", node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        """Exchange break by continue."""
        self.add("continue/break", node, "continue")

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Let an error pass by a handler that catches nothing."""
        self.statement_line, before = node.body[0].lineno, self.statement_line
        if node.type is not None and self.function:
            self.add("except", node.type, "()")
        for statement in node.body:
            self.visit(statement)
        self.statement_line = before

    def visit_Return(self, node: ast.Return) -> None:
        """Return an empty value of the declared type, or the opposite of a condition."""
        value = node.value
        if value is None:
            return
        declared = re.split(r"\W", ast.unparse(self.returns))[0] if self.returns is not None else ""
        is_optional = self.returns is not None and "None" in ast.unparse(self.returns)
        empty = "None" if is_optional else EMPTY.get(declared, "None")
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            self.add("return", value, str(not value.value))
            return
        negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        if empty == "not":
            if not negated:
                self.add("return", value, f"not ({self.text(value)})")
        elif self.text(value) != empty:
            self.add("return", value, empty)
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a boundary by one."""
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            if type(operator) in BOUNDARIES:
                self.exchange_between("boundary", left, right, *BOUNDARIES[type(operator)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a not."""
        if isinstance(node.op, ast.Not):
            self.add("not", node, f"bool({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`, and drop the first or the last condition."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        values = node.values
        for left, right in itertools.pairwise(values):
            self.exchange_between("and/or", left, right, old, new)
        rest = (self.span(values[1])[0], self.span(values[-1])[1])
        start = (self.span(values[0])[0], self.span(values[-2])[1])
        for first, last in (rest, start):
            kept = self.source[first:last].decode()
            if kept.count("(") == kept.count(")"):
                self.add("drop condition", node, f"({kept})", self.span(node))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Exchange an arithmetic operator by its opposite."""
        is_type = not self.function and isinstance(node.op, ast.BitOr)
        if (
            type(node.op) in ARITHMETIC
            and not is_type
            and not _is_text(node.left)
            and not _is_text(node.right)
        ):
            self.exchange_between("arithmetic", node.left, node.right, *ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Exchange min/max and any/all, and drop a field of replace()."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if isinstance(node.func, ast.Name) and name in EXCHANGED:
            self.add("min/max any/all", node.func, EXCHANGED[name])
        if name in {"replace", "evolve"} and node.args and all(keyword.arg for keyword in node.keywords):
            self.drop_keywords(node)
        if name in {"cast", "TypeVar", "NewType"}:
            return
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Visit the value of a keyword whose effect can be seen."""
        if node.arg not in UNSEEN_KEYWORDS:
            self.visit(node.value)

    def drop_keywords(self, node: ast.Call) -> None:
        """Leave out each keyword of a call in turn."""
        parts: list[ast.AST] = [*node.args, *node.keywords]
        for keyword in node.keywords:
            position = parts.index(keyword)
            self.add("replace()", keyword, "", (self.span(parts[position - 1])[1], self.span(keyword)[1]))

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number by one, exchange True and False."""
        if isinstance(node.value, bool):
            self.add("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self.add("constant", node, str(node.value + 1))
        elif isinstance(node.value, float):
            self.add("constant", node, repr(node.value * 2 if node.value else 1.0))


def _names_of(statement: ast.stmt) -> tuple[str, ...]:
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (statement.name,)
    return tuple(part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def _is_declaration(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function only declares: an overload, a protocol's method, a debugging text."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    body = [statement for statement in node.body if not isinstance(statement, ast.Pass)]
    is_empty = all(
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) for statement in body
    )
    return (
        is_empty
        or node.name == "__repr__"
        or bool(decorators & {"overload", "abstractmethod", "typing.overload"})
    )


def _is_log(call: ast.Call) -> bool:
    parts = re.split(r"\W+", ast.unparse(call.func))
    return bool(set(parts[:-1]) & LOGGERS)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
