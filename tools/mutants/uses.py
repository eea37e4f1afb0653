"""Find the blocks that use a definition, by the names that their text mentions."""

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants.probes import blocks_of

DEPTH = 3
"""How many definitions may stand between a constant and the code that uses it."""


@dataclass
class Uses:
    """The blocks of functions, and the names of definitions, that mention each name."""

    blocks: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    definitions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def blocks_using(self, names: tuple[str, ...]) -> set[tuple[str, int]]:
        """Return the blocks that mention a name, or a definition that mentions it, and so on."""
        known, found = set(names), set(names)
        for _ in range(DEPTH):
            found = {user for name in found for user in self.definitions.get(name, ())} - known
            known |= found
        return {block for name in known for block in self.blocks.get(name, ())}


def uses_in(files: list[Path]) -> Uses:
    """Index the names of all files."""
    uses = Uses()
    for file in files:
        source = file.read_bytes()
        by_line = blocks_of(source).by_line
        _index(uses, ast.parse(source), str(file), by_line, None)
    return uses


def _index(uses: Uses, node: ast.AST, file: str, by_line: dict[int, int], owner: str | int | None) -> None:
    """Note the names below a node; `owner` is the block or the definition that the node belongs to."""
    for child in ast.iter_child_nodes(node):
        below = owner
        if isinstance(child, ast.stmt):
            below = _owner(child, by_line, owner)
        if below is not None:
            for name in _mentioned(child):
                if isinstance(below, int):
                    uses.blocks[name].add((file, below))
                elif name != below:
                    uses.definitions[name].add(below)
        _index(uses, child, file, by_line, below)


def _owner(statement: ast.stmt, by_line: dict[int, int], owner: str | int | None) -> str | int | None:
    if statement.lineno in by_line:
        return by_line[statement.lineno]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(targets[0], ast.Name):
        return targets[0].id
    return statement.name if isinstance(statement, ast.ClassDef) else owner


def _mentioned(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.keyword) and node.arg:
        return [node.arg]
    return []
