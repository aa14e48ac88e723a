"""The pages of the documentation and what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").glob("*.md")])
EXCUSE = re.compile(r"<!-- not run: (\S.*) -->")
EXCUSE_OF_ALL = re.compile(r"^<!-- no block here is run: (\S.*) -->$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


class Block(Struct, frozen=True, kw_only=True):
    """A fenced block. `excuse` says why it is not run, None for one that is."""

    page: Path
    line: int
    language: str
    text: str
    excuse: str | None

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    before, start = "", 0
    fence: str | None = None
    body: list[str] = []
    text = page.read_text("utf-8")
    of_all = EXCUSE_OF_ALL.search(text)
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None and line.startswith("```"):
            fence, body, start = line[3:].strip(), [], number
        elif fence is not None and line == "```":
            excuse = EXCUSE.fullmatch(before) or of_all
            yield Block(
                page=page,
                line=start,
                language=fence,
                text="\n".join(body) + "\n",
                excuse=excuse[1] if excuse else None,
            )
            fence, before = None, ""
        elif fence is not None:
            body.append(line)
        elif line.strip():
            before = line
    assert fence is None, f"{page}: a block that begins in line {start} does not end"


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def words_in_code(page: Path) -> list[str]:
    """The inline code of a page."""
    return _CODE.findall(prose(page))


def rows(page: Path, head: str) -> list[list[str]]:
    """The cells of the tables whose first heading is `head`, without backticks."""
    found: list[list[str]] = []
    inside = False
    for line in page.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[0] == head:
            inside = True
        elif inside and not set(cells[0]) <= {"-"}:
            found.append(cells)
    return found


def plain(cell: str) -> str:
    """A cell's text without the marks of code."""
    return cell.replace("`", "")
