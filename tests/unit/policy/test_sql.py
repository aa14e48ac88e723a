"""SQL texts and what they do."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.policy import sql
from signoff.policy.shell import UNKNOWN

READS = [
    "",
    "select 1",
    "SELECT * FROM x WHERE a = 'DROP TABLE y'",
    'select "drop" from `truncate`',
    "select 1 -- drop table x",
    "select 1 # drop table x",
    "select /* drop table x; */ 1;",
    "select 'it''s; drop table x'",
    "select $$drop table x$$",
    "select $a$ $$ drop table x $a$",
    "explain delete from x",
    "with a as (select 1) select * from a",
    "begin; select 1; commit",
    "show tables; describe x",
    r"\dt",
    "\\x on\nselect 1",
    ".tables",
    ".headers on\nselect 1;",
    "pragma table_info(x)",
    "copy x to stdout",
    "set search_path to y",
]
WRITES = [
    "insert into x values (1)",
    "update x set a = 1 where b = 2",
    "delete from x where id = 3",
    "create table x (id int)",
    "with a as (insert into x values (1) returning *) select * from a",
    "select * into y from x",
    "explain analyze update x set a = 1 where b = 2",
    "grant all on x to y",
    "set global max_connections = 1",
    "pragma journal_mode = wal",
    "select setval('s', 1)",
    "select lo_unlink(1)",
]
DESTROYS = [
    "drop table x",
    "DROP\n\tTABLE x",
    "/**/drop/**/table x",
    "truncate x",
    "delete from x",
    "delete from x where 1=1",
    "delete from x where (true)",
    "update x set a = 1",
    "alter table x drop column y",
    "select 1; drop table x",
    "select ';'; drop table x",
    "select '\\'; drop table x; --'; drop table y",
    "/*!50000 drop table x */",
    "do $$ begin drop table x; end $$",
    "with a as (delete from x returning *) select * from a",
    "explain analyze delete from x",
    f"drop table {UNKNOWN}",
]
RUNS = [
    r"\! id",
    "select 1\n\\! id",
    "copy x from program 'id'",
    ".shell id",
    "select load_extension('x')",
    "select * from x into outfile '/tmp/x'",
    "exec xp_cmdshell 'dir'",
    r"\copy x to y",
    r"\o |sh",
]


@pytest.mark.parametrize("text", READS)
def test_reads(text: str) -> None:
    assert sql.effect(text) == "reads"


@pytest.mark.parametrize("text", WRITES)
def test_writes(text: str) -> None:
    assert sql.effect(text) == "writes"


@pytest.mark.parametrize("text", DESTROYS)
def test_destroys(text: str) -> None:
    assert sql.effect(text) == "destroys"


@pytest.mark.parametrize("text", RUNS)
def test_runs(text: str) -> None:
    assert sql.effect(text) == "runs"


def test_a_name_that_is_not_known_could_be_anything() -> None:
    assert sql.effect("select * from \x00") == "unknown"
    assert sql.effect("select * from x where a = '\x00'") == "reads"


@settings(deadline=None)
@given(st.text(alphabet="abc'\"`;$-/*\\\n\x00.!# ", max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    assert sql.effect(text) in {"reads", "unknown", "writes", "destroys", "runs"}


@settings(deadline=None)
@given(st.sampled_from(DESTROYS), st.sampled_from(READS), st.booleans())
def test_harmless_statements_around_hide_nothing(bad: str, good: str, before: bool) -> None:
    if good.startswith((".", "\\")) or "--" in good or "#" in good:
        good += "\n"
    assert sql.effect(f"{good};{bad}" if before else f"{bad};\n{good}") in {"destroys", "runs"}


@pytest.mark.parametrize("piece", ["'", '"', "$a$b", "/*", "--x", "(", "\\x ", "$$a", "[a", ";", "''\\"])
def test_long_texts_are_read_in_time(piece: str) -> None:
    start = time.thread_time()
    sql.effect(piece * 20_000)
    assert time.thread_time() - start < 0.5
