"""House rules that a machine can check: sizes, names, and what stands in an adapter's folder."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest

from tests.docs.pages import ROOT

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 50
LONG_MODULES = {
    "gateway/signoff/model.py": "all words of Signoff as data; two files would import each other",
}
LONG_FUNCTIONS = {
    "gateway/signoff/record.py:approval_of": "one line a field of the record; splitting it would hide a missing one",
    "tests/unit/config/test_config.py:test_a_whole_file_becomes_typed_settings": "one configuration with every setting",
}
"""Exceptions, each with its reason."""
ADAPTER_FILES = {"__init__.py", "adapter.py", "config.py", "render.py", "wire.py"}
ADAPTER_MAY_IMPORT = {"errors", "lifecycle", "model", "ports", "ids"}

FILES = sorted(
    file
    for folder in ("gateway", "adapters", "tests", "docs")
    for file in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in file.parts
)
ADAPTERS = sorted(
    folder for folder in (ROOT / "adapters" / "signoff_adapters").iterdir() if (folder / "__init__.py").is_file()
)


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def functions(file: Path) -> Iterator[tuple[str, int]]:
    """Each function's name and lines, signature and docstring included."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_modules_are_short() -> None:
    long = {name_of(file) for file in FILES if file.read_text("utf-8").count("\n") > MAX_MODULE_LINES}
    assert long == set(LONG_MODULES), "split it, or take it off the list of exceptions"
    assert all(LONG_MODULES.values()), "an exception names its reason"


def test_functions_are_short() -> None:
    long = {
        f"{name_of(file)}:{name}" for file in FILES for name, lines in functions(file) if lines > MAX_FUNCTION_LINES
    }
    assert long == set(LONG_FUNCTIONS), "split it, or take it off the list of exceptions"
    assert all(LONG_FUNCTIONS.values()), "an exception names its reason"


def test_no_comment_puts_anything_off() -> None:
    later = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
    found = []
    for file in FILES:
        text = file.read_text("utf-8")
        if not later.search(text):
            continue
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        found += [f"{name_of(file)}:{token.start[0]}" for token in comments if later.search(token.string)]
    assert found == []


def test_there_is_no_package_file_in_the_source_roots() -> None:
    assert not (ROOT / "gateway" / "__init__.py").exists()
    assert not (ROOT / "adapters" / "__init__.py").exists()


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda folder: folder.name)
def test_an_adapter_has_the_shape_of_all(folder: Path) -> None:
    assert {file.name for file in folder.glob("*.py")} >= ADAPTER_FILES
    point = next(iter(entry_points(group="signoff.adapters", name=folder.name)))
    adapter = point.load()
    assert adapter.__name__.lower() == f"{folder.name}adapter"
    assert adapter.config_type.__name__ == adapter.__name__.replace("Adapter", "Config")
    assert issubclass(adapter.config_type, msgspec.Struct)
    assert adapter.info.platform == folder.name


def taken_from_the_core(files: Iterable[Path]) -> set[str]:
    taken = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "signoff":
                taken.add((node.module or "").partition(".")[2])
            elif isinstance(node, ast.Import):
                taken |= {each.name for each in node.names if each.name.split(".")[0] == "signoff"}
    return taken


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda folder: folder.name)
def test_an_adapter_imports_the_ports_and_the_words_only(folder: Path) -> None:
    assert taken_from_the_core(folder.rglob("*.py")) <= ADAPTER_MAY_IMPORT


def test_what_adapters_share_imports_no_more() -> None:
    shared = set((ROOT / "adapters" / "signoff_adapters").glob("*.py"))
    words = {file for file in shared if file.name == "words.py"}
    assert taken_from_the_core(words) == {"texts"}
    assert taken_from_the_core(shared - words) <= ADAPTER_MAY_IMPORT
