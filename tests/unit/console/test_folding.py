"""A long action on a page: no character is lost, its end is in sight, and what people are asked for is not folded."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.console.test_answering import row_of
from tests.unit.console.world import Place

from signoff.console.folding import LONG_CHARS, LONG_LINES, fold
from signoff.model import replace

STEPS = "\n".join(f"echo step {number} of a long night" for number in range(40))
LINES = st.lists(st.text(st.characters(exclude_characters="\r\x00", codec="utf-8"), max_size=90), max_size=60)


@given(LINES, st.text("ab⟨⟩ \u0301😀", max_size=3000))
def test_the_parts_are_the_whole(lines: list[str], word: str) -> None:
    for text in ("\n".join(lines), word, "\n".join([*lines, word])):
        parts = fold(text)
        if parts is None:
            continue
        assert parts.head + parts.middle + parts.tail == text
        assert parts.head and parts.tail and parts.middle


def test_what_is_short_is_not_folded() -> None:
    assert fold("rm -rf build") is None
    assert fold("\n" * LONG_LINES) is None
    assert fold("x" * LONG_CHARS) is None


def test_whole_lines_are_folded_and_counted() -> None:
    parts = fold(f"set -e\n{STEPS}\ngit push\n")
    assert parts is not None
    assert parts.head.startswith("set -e\n") and parts.head.endswith("\n")
    assert parts.tail.endswith("step 39 of a long night\ngit push\n")
    assert parts.middle.endswith("\n")
    assert parts.more == f"{parts.middle.count(chr(10))} more lines"
    assert not parts.open


def test_a_line_without_an_end_is_counted_by_its_characters() -> None:
    parts = fold("x" * 5000 + " && rm -rf /srv")
    assert parts is not None
    assert parts.tail.endswith("&& rm -rf /srv")
    assert parts.more == f"{len(parts.middle):,} more characters"


@pytest.mark.parametrize(
    ("asks", "is_open"),
    [
        ((), False),
        (("rm -rf ./old",), False),
        (("git  push",), True),
        (("echo step 20 of a long night",), True),
        (("rm -rf ./old", "rm -rf /root/x"), True),
        (("rm",), False),
        (("rm -rf ./o",), True),
        (("of a long night",), True),
        (("rm -rf ./old", "rm -rf ./old"), True),
        (None, True),
    ],
)
def test_what_people_are_asked_for_is_never_folded_away(asks: tuple[str, ...] | None, is_open: bool) -> None:
    parts = fold(f"rm   -rf\t./old\n{STEPS}", asks=asks)
    assert parts is not None and parts.open == is_open
    whole = fold(STEPS, open=True)
    assert whole is not None and whole.open


@pytest.mark.parametrize("decoy", ["echo 'result of surplus'", "sub", "./su", "su/x", "a=su", "su"])
def test_what_only_looks_like_it_is_not_taken_for_it(decoy: str) -> None:
    parts = fold(f"{decoy}\n{STEPS}\nsu\n{STEPS}\n{decoy}", asks=("su",))
    assert parts is not None and parts.open
    cut = fold(f"rm -rf ./{'a' * 3000} && true", asks=(f"rm -rf ./{'a' * 600}",))
    assert cut is not None and cut.open


def code_of(page: str, short_id: str) -> str:
    article = re.search(rf'<article [^>]*id="r-{short_id}".*?</article>', page, re.DOTALL)
    assert article is not None
    return article[0]


async def test_a_list_shows_both_ends_and_a_page_of_its_own_the_whole(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    command = f"set -e\n{STEPS}\ngit push --force origin main"
    record = await agent.ask(action={"kind": "command", "command": command})
    listed = code_of((await person.get("/console")).text, record["short_id"])
    assert '<details class="rest"><summary>' in listed
    head, rest = listed.split('<details class="rest">')
    middle, tail = rest.split("</details>", 1)
    assert "set -e" in head and "more lines</summary>" in middle
    assert tail.index("git push --force origin main") < tail.index('name="choice"')
    parts = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", listed, re.DOTALL)
    assert html.unescape("".join(parts)) == command
    alone = code_of((await person.get(f"/console/r/{record['short_id']}")).text, record["short_id"])
    assert '<details class="rest" open><summary>' in alone


async def test_a_dangerous_middle_stands_open_in_the_list(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": f"{STEPS}\ngit push --force origin main\n{STEPS}"})
    listed = code_of((await person.get("/console")).text, record["short_id"])
    assert '<details class="rest" open><summary>' in listed


ECHOES = "\n".join(f"echo {number}" for number in range(30))


@pytest.mark.parametrize(
    "command",
    [
        "\n".join([*(f"echo {number}" for number in range(220)), "rm -rf build", ECHOES]),
        "\n".join(["git push -f", *(f"echo {number}" for number in range(220)), "rm -rf build", ECHOES]),
        f"{ECHOES}\nfoo ) ( x\n{ECHOES}",
        f"git push -f\n{ECHOES}\nfoo ) ( x\n{ECHOES}",
        f'rm -rf build\n{ECHOES}\n"rm" -rf build\n{ECHOES}',
        f"rm -rf build\n{ECHOES}\nsu\n{ECHOES}\necho 'result of surplus'",
    ],
)
async def test_it_stands_open_where_a_command_that_asks_may_be_in_it(here: Place, command: str) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": command})
    listed = code_of((await person.get("/console")).text, record["short_id"])
    assert '<details class="rest" open><summary>' in listed


async def test_it_stands_open_where_no_command_is_told(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    steps = [f"step {number} of a long night" for number in range(80)]
    record = await agent.ask(action={"kind": "tool", "name": "send_mails", "arguments": {"to": steps}})
    listed = code_of((await person.get("/console")).text, record["short_id"])
    assert '<details class="rest" open><summary>' in listed


async def test_it_stands_open_where_other_rules_asked_for_it(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": f"{STEPS}\ngit push --force origin main"})
    row = replace(await row_of(here, record), rule_keys=("git.force_push", "own.gone"))
    await here.core.store.transact(lambda tx: tx.put(row))
    listed = code_of((await person.get("/console")).text, record["short_id"])
    assert '<details class="rest" open><summary>' in listed


async def test_the_second_step_shows_all_of_it(here: Place) -> None:
    agent, person = await here.agent(), await here.person()
    record = await agent.ask(action={"kind": "command", "command": f"{STEPS}\ngit push --force origin main"})
    row = replace(await row_of(here, record), severity="critical")
    await here.core.store.transact(lambda tx: tx.put(row))
    told = await person.decide(record, "once")
    assert told["how"] == "confirm" and '<details class="rest" open>' in told["html"]
    assert told["html"].index("git push --force origin main") < told["html"].index("<button")
