"""Figures of the house: how much code there is, and how tangled it is.

    python -m tests.benchmarks.house                     # of this tree
    python -m tests.benchmarks.house --against 8ec1019   # beside a git revision
    python -m tests.benchmarks.house --list rings        # what a figure is made of

The figures are a compass: a file or a name is not wrong because it is counted here. Everything is
read from the syntax trees of ``agent_tui``; nothing is imported or run. What each figure means is
said by the function that finds it.
"""

import argparse
import ast
import io
import re
import statistics
import subprocess
import tarfile
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "agent_tui"
_ROOT = Path(__file__).parents[2]
_NO_CODE = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file. `name` is dotted; a package's is that of its ``__init__``."""

    name: str
    is_package: bool
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """Numbers of the lines with code: no blanks, no comments, no docstrings.

        A string that stands alone is a docstring, also under an assignment.
        """
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in _NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and _is_text(node.value):
                lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
        return frozenset(lines)

    @cached_property
    def functions(self) -> list[FunctionNode]:
        """Every function and method, nested ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, FunctionNode)]

    @property
    def public_names(self) -> list[str]:
        """Top-level classes, functions, constants and type aliases that begin with a letter."""
        names: list[str] = []
        for node in self.tree.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.append(node.name)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    names.append(name)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.append(name)
                case _:
                    pass
        return [name for name in dict.fromkeys(names) if not name.startswith("_")]


@dataclass(frozen=True)
class House:
    """All modules of the package, by dotted name, and the text of the contributor's guide."""

    modules: Mapping[str, Module]
    guide: str = ""

    @property
    def code_lines(self) -> int:
        return sum(len(module.code_lines) for module in self.modules.values())

    @cached_property
    def public_names(self) -> dict[str, int]:
        """``module.name`` -> in how many other modules of the package it is read.

        A module reads a name that it imports from where it is defined or from a package that
        hands it on, or takes from an imported module (``paths.data_dir``). Handing on in an
        ``__init__`` is no reading. Tests are no readers, and neither is the module itself.
        """
        readers: defaultdict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for used in self._used_names(module):
                home, name = self._home_of(*used)
                if home != module.name and not module.is_package:
                    readers[f"{home}.{name}"].add(module.name)
        return {
            full: len(readers[full])
            for module in self.modules.values()
            for full in (f"{module.name}.{name}" for name in module.public_names)
        }

    @property
    def little_read(self) -> list[str]:
        """Public names that at most one other module reads."""
        return sorted(name for name, readers in self.public_names.items() if readers <= 1)

    @property
    def pass_throughs(self) -> list[str]:
        """Functions and properties that only hand on to an attribute: see `is_pass_through`."""
        return sorted(
            f"{module.name}:{function.lineno} {function.name}"
            for module in self.modules.values()
            for function in module.functions
            if is_pass_through(function)
        )

    @property
    def rings(self) -> list[list[str]]:
        """Modules that import each other, however far round: the largest ring first.

        Strongly connected components of more than one module. Every import counts: at the top,
        inside a function, and under ``TYPE_CHECKING``. That importing ``a.b`` also runs
        ``a/__init__.py`` does not.
        """
        graph = {module.name: self._imported_modules(module) for module in self.modules.values()}
        return sorted(
            (sorted(ring) for ring in _components(graph) if len(ring) > 1),
            key=lambda ring: (-len(ring), ring),
        )

    @property
    def function_lengths(self) -> dict[str, int]:
        """Code lines of each function, its signature included, by ``module:line name``."""
        return {
            f"{module.name}:{node.lineno} {node.name}": sum(
                node.lineno <= line <= (node.end_lineno or 0) for line in module.code_lines
            )
            for module in self.modules.values()
            for node in module.functions
        }

    @property
    def lazy_imports(self) -> list[str]:
        """Import statements inside a function."""
        return sorted(
            {
                f"{module.name}:{node.lineno}"
                for module in self.modules.values()
                for function in module.functions
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom)
            }
        )

    @property
    def type_checking_blocks(self) -> list[str]:
        """Blocks that only a type checker reads."""
        return sorted(
            f"{module.name}:{node.lineno}"
            for module in self.modules.values()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )

    @property
    def recipes(self) -> dict[str, list[str]]:
        """The files that each recipe of the contributor's guide names, in its order.

        A recipe is a bullet that begins with **New ...**. A file is what stands in backticks and
        has a slash or ends like a source file; what is only called, such as ``base.Provider``, is
        none. The one new file of a recipe counts as well.
        """
        section = self.guide.partition("\n## Recipes\n")[2].partition("\n## ")[0]
        found: dict[str, list[str]] = {}
        for bullet in re.split(r"^- ", section, flags=re.MULTILINE):
            title = re.match(r"\*\*(New [^*]+)\*\*", bullet)
            if title is not None:
                quoted = re.findall(r"`([^`\s]+)`", bullet)
                found[title[1]] = list(dict.fromkeys(text for text in quoted if _is_file(text)))
        return found

    def _imports(self, module: Module) -> Iterator[tuple[str, str, str]]:
        """Each import as (module, name in it or nothing, name it is bound to)."""
        for node in ast.walk(module.tree):
            match node:
                case ast.ImportFrom(module=str(source), names=names):
                    for alias in names:
                        yield source, alias.name, alias.asname or alias.name
                case ast.Import(names=names):
                    for alias in names:
                        yield alias.name, "", alias.asname or alias.name
                case _:
                    pass

    def _imported_modules(self, module: Module) -> set[str]:
        found: set[str] = set()
        for source, name, _ in self._imports(module):
            inner = f"{source}.{name}"
            found.add(inner if inner in self.modules else source)
        return (found & set(self.modules)) - {module.name}

    def _used_names(self, module: Module) -> Iterator[tuple[str, str]]:
        """(module, name) of what `module` takes from other modules of the package."""
        bound: dict[str, str] = {}
        for source, name, as_name in self._imports(module):
            inner = f"{source}.{name}" if name else source
            if inner in self.modules:
                bound[as_name] = inner
            elif source in self.modules:
                yield source, name
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute):
                source = bound.get(ast.unparse(node.value))
                if source is not None:
                    yield source, node.attr

    def _home_of(self, source: str, name: str) -> tuple[str, str]:
        """Where `name` is defined that `source` has, through any number that hand it on."""
        seen: set[tuple[str, str]] = set()
        while (source, name) not in seen:
            seen.add((source, name))
            module = self.modules.get(source)
            if module is None or name in module.public_names:
                break
            for origin, original, as_name in self._imports(module):
                if as_name == name and origin in self.modules:
                    source, name = origin, original
                    break
        return source, name


def is_pass_through(function: FunctionNode) -> bool:
    """Whether `function` does nothing but hand on to an attribute of its first argument.

    It returns (or awaits, or just calls) ``self.part.thing``, a chain of at least two attributes,
    either as it is or called with exactly the function's own arguments, in their order.
    """
    body = [node for node in function.body if not _is_docstring(node)]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    if isinstance(value, ast.Await):
        value = value.value
    arguments = function.args
    names = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if isinstance(value, ast.Call):
        given = [*value.args, *(keyword.value for keyword in value.keywords)]
        if [ast.unparse(node) for node in given] != names[1:]:
            return False
        value = value.func
    elif names[1:] or isinstance(body[0], ast.Expr):
        return False
    depth = 0
    while isinstance(value, ast.Attribute):
        value, depth = value.value, depth + 1
    return depth >= 2 and isinstance(value, ast.Name) and names[:1] == [value.id]


def read_house(root: Path) -> House:
    """The package in the checkout at `root`."""
    modules: dict[str, Module] = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = Module(name, is_package, path.read_text(encoding="utf-8"))
    guide = root / "CONTRIBUTING.md"
    return House(modules, guide.read_text(encoding="utf-8") if guide.exists() else "")


def read_revision(revision: str) -> House:
    """The package as of a git revision of this repository."""
    command = ["git", "archive", revision, PACKAGE, "CONTRIBUTING.md"]
    archive = subprocess.run(command, cwd=_ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
        return read_house(Path(folder))


def figures(house: House) -> dict[str, str]:
    """Each figure in words, in the order of the table."""
    lengths = sorted(house.function_lengths.values()) or [0]
    rings = house.rings
    return {
        "code lines": f"{house.code_lines:,}",
        "files": f"{len(house.modules):,}",
        "public names": f"{len(house.public_names):,}",
        "  read by at most one module": f"{len(house.little_read):,}",
        "pass-throughs": str(len(house.pass_throughs)),
        "rings of modules": str(len(rings)),
        "  modules in the largest": str(len(rings[0]) if rings else 0),
        "  modules in any": str(sum(map(len, rings))),
        "TYPE_CHECKING blocks": str(len(house.type_checking_blocks)),
        "imports inside functions": str(len(house.lazy_imports)),
        "functions": f"{len(lengths):,}",
        "  median code lines": f"{statistics.median(lengths):.0f}",
        "  95th percentile": str(lengths[int(0.95 * (len(lengths) - 1))]),
        "  longest": str(lengths[-1]),
        **{f"files for: {title}": str(len(files)) for title, files in house.recipes.items()},
    }


def table(columns: Mapping[str, House]) -> str:
    """The figures of several houses beside each other, a column each."""
    counted = {title: figures(house) for title, house in columns.items()}
    rows = list(dict.fromkeys(row for column in counted.values() for row in column))
    width = max(map(len, rows))
    head = " ".join([" " * width, *(f"{title:>12}" for title in counted)])
    lines = (
        " ".join(
            [f"{row:{width}}", *(f"{column.get(row, '-'):>12}" for column in counted.values())]
        )
        for row in rows
    )
    return "\n".join([head, *lines])


def details(house: House, figure: str) -> Iterable[str]:
    """What a figure is made of, a line each."""
    lengths = house.function_lengths
    listed: dict[str, Sequence[str]] = {
        "little-read": house.little_read,
        "pass-throughs": house.pass_throughs,
        "rings": [", ".join(ring) for ring in house.rings],
        "lazy-imports": house.lazy_imports,
        "type-checking": house.type_checking_blocks,
        "functions": [
            f"{lengths[name]:4} {name}" for name in sorted(lengths, key=lambda name: lengths[name])
        ],
        "recipes": [f"{title}: {', '.join(files)}" for title, files in house.recipes.items()],
    }
    return listed[figure]


def main() -> None:
    """Print the table, or what one figure is made of."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--against", metavar="REV", help="a git revision to show beside this tree")
    parser.add_argument("--list", metavar="FIGURE", choices=DETAILS, help=", ".join(DETAILS))
    arguments = parser.parse_args()
    here = read_house(_ROOT)
    if arguments.list:
        print("\n".join(details(here, arguments.list)))
        return
    before = {arguments.against: read_revision(arguments.against)} if arguments.against else {}
    print(table({**before, "this tree": here}))


DETAILS = (
    *("little-read", "pass-throughs", "rings", "lazy-imports"),
    *("type-checking", "functions", "recipes"),
)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_text(node.value)


def _is_file(text: str) -> bool:
    return bool(re.search(r"/|\.(py|md|toml|ya?ml)$", text)) and not text.startswith("/")


def _components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Strongly connected components: what reaches each other (Kosaraju's two passes)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        order.extend(_finished(start, graph, seen))
    back: defaultdict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            back[target].add(name)
    seen = set()
    return [set(_finished(name, back, seen)) for name in reversed(order) if name not in seen]


def _finished(start: str, graph: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """What is reached from `start` and was not `seen` yet, each after all it reaches."""
    if start in seen:
        return []
    seen.add(start)
    done: list[str] = []
    stack = [(start, iter(sorted(graph.get(start, ()))))]
    while stack:
        name, rest = stack[-1]
        target = next((target for target in rest if target not in seen), None)
        if target is None:
            done.append(name)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(sorted(graph.get(target, ())))))
    return done


if __name__ == "__main__":
    main()
