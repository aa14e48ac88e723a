"""What is decided at a glance is what the closer look would have said: about secrets, odd characters and names."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signoff import masking, secret_names, visible
from signoff.display import WINDOW_CHARS, shown, shown_beginning
from signoff.masking import Mask, masks, masks_before, unremarkable

GH = "ghp_0123456789abcdefghijABCDEFGHIJ0123459k"
PIECES = [
    *(GH, "AKIAIOSFODNN7EXAMPLE", "eyJhbGci.eyJzdWIi.x", "x9Kd83mQpZ7vTgYw2LbN5cRf8sHj4aUe", "sk-abc123def456", "hvs."),
    *("-----BEGIN PRIVATE KEY-----", "\n", "-----END PRIVATE KEY-----", "MIIEvQIBADANBgkq", "Ab1=", "AIza", "SG."),
    *("PASSWORD=", "--token ", "secret: ", "Api-Key: ", "_auth", "pwd", "credential", "to\u212aen", "\u0130key="),
    *("://", "https://ana:", "@", "Bearer ", "basic ", "hooks.slack.com/services/", "discord.com/api/webhooks/1/"),
    *("mysql -p", "curl -u a:", "sshpass -p ", "docker login -p ", "openssl -passin pass:", "123456789:", "x1"),
    *("rm -rf ", "build", "nightly-folder", "/srv/app/releases/2026", "Deletes a folder ", " ", " " * 9, "\t"),
    *("redis-cli -a ", "\u200b", "a", "Z9", "-", "_", ".", "=", "'", '"', "$", "`", "|", ";", "é", "⟨", "e\u0301"),
    *("\udc80", "sh", "eval ", "zip -P ", "7z -p", "ldapsearch -w ", "smbclient -U a%", "lftp -u a,", "xfreerdp /p:"),
    *("keytool -storepass ", "ssh-keygen -N ", "secret --from-literal=k=", "Cookie: a=", "curl -b 'a="),
    *("net use \\\\a ", "db_pass=", "PASS: ", "pass: ", "identified by '", "password:\n  ", "token: |\n "),
    *("htpasswd -nb a ", "http -a a:", "\n  "),
    *("mongo -p ", "sqlcmd -P ", "plink -pw ", "config set a_token ", "fly secrets set A=", "Digest response=", ">-\n"),
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(["rm", "the", "folder-of-build", " ", "\n", "17", "Runs", "a", "-rf", "."])).map("".join),
    st.text(max_size=60),
    st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60),
)  # fmt: skip


def closely(text: str, prose: bool) -> list[Mask]:
    """The masks without the glance before them."""
    return masking._covering(text, masking._all_secrets(text, prose))


@given(TEXTS, st.booleans())
@example("PASSWORD=x", False)
@example("a://b:c@d", True)
@example("basic Abcdefgh", True)
@example("pwd: hunter2", True)
@example("eyJabcd.efgh", True)
@example("hvs." + "a1" * 8, True)
@example("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----", True)
def test_a_text_without_a_remarkable_thing_has_no_secret(text: str, prose: bool) -> None:
    assert masks(text, prose=prose) == closely(text, prose)


@pytest.mark.parametrize(
    "text",
    [
        *("a://b:c1@d", "basic Abcdefg1", "Bearer Abcdef12", "discord.com/api/webhooks/1/a"),
        *("hooks.slack.com/services/T/B/x", "mysql -px1", "mariadb -px1", "sshpass -p x1", "redis-cli -a x1"),
        *("docker login -p x1", "curl -u a:x1", "wget --user a:x1", "openssl x -passin pass:x1", "A_SECRET=x1"),
        *("token=x1", "passwd=x1", "db_pwd=x1", "Api-Key: x1", "credential=x1", "authorization: x1", "_auth=x1"),
        *("AKIAIOSFODNN7EXAMPLE", "ghp_a1b2c3d4", "eyJabcd.efgh", "123456789:" + "aB3-" * 8, "x9Kd83mQ" * 4),
        *("folder/of/builds ghp_a1b2c3d4 ok", "folder/of/builds,eyJabcd.efgh,ok", "folder/of/builds " + "x9Kd83mQ" * 4),
        *("zip -P x1", "unzip -Px1", "7z a -px1", "unrar x -px1", "ldapsearch -w x1", "smbget -U a%x1", "http -a a:x1"),
        *("rpcclient -U a%x1", "ftp -u a,x1", "lftp -u a,x1", "xfreerdp /p:x1", "keytool -storepass x1"),
        *("ssh-keygen -N x1", "htpasswd -nb a x1", "net use \\\\a x1", "net user a x1", "sqlcmd -P x1", "plink -pw x1"),
        *("pscp -pw x1", "psftp -pw x1", "mongo -p x1", "valkey-cli -a x1", "fly secrets set A=x1", "openssl -k x1"),
        *("secret --from-literal=a=x1", "kubectl create secret generic s --from-literal a=x1"),
        *("gh secret set A -b x1", "nmcli password x1", "wpa_passphrase a x1", "add-generic-password -w x1"),
        *("config set a_token x1", "jarsigner -keypass x1", "Cookie: a=x1", "SET-COOKIE: a=x1", "curl -b a=x1"),
        *("identified by 'x1'", "user a password 'x1'", "db_pass=x1", "pass: x1", "password:\n  x1", "token: |\n  x1"),
        *("authorization: Digest response=x1", "IDENTIFIED BY 'x1'", "psql; mysqldump -px1"),
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgk3\n-----END PRIVATE KEY-----",
    ],
)
def test_no_form_of_a_secret_passes_the_glance(text: str) -> None:
    assert masking._all_secrets(text, True), "it is one"
    assert not unremarkable(text)


@pytest.mark.parametrize(
    "text",
    ["rm -rf build-17", "nightly", "Deletes a folder and everything in it", "line one\nline two", "/srv/app", ""],
)
def test_everyday_texts_need_no_closer_look(text: str) -> None:
    assert unremarkable(text)
    assert shown(text) == text


@given(TEXTS, st.booleans())
@example("x" + " " * 9, True)
@example("x" + " " * 8 + "y", True)
@example(" " * 90, True)
@example("x\n" + " " * 90 + "y", True)
@example("\ta", False)
def test_a_plain_text_has_nothing_to_write_out(text: str, line_start: bool) -> None:
    writer = visible._Writer(line_start)
    assert visible.visible(text, line_start=line_start) == visible._PIECE.sub(writer, text)
    assert line_start is False or visible.invisible_count(text) == writer.invisible


# --- names -------------------------------------------------------------------------------------------

AS_WRITTEN = re.compile(
    r"secret|token|pass|pwd|(?:api|access|private|auth|signing|session|account|encryption)[-_.]?key"
    r"|credential|authorization|_auth",
    re.IGNORECASE | re.ASCII,
)


@given(TEXTS | st.text(alphabet="aceghinoprstuvwyzkKAS_-.\u212a\u0130\u017f", max_size=60))
@example(
    "API_KEY auth-key AUTHORIZATION _Auth passPhrase PassCode PASSWD encryption.key to\u212aen \u017fecret sessionkey"
)
def test_names_are_found_in_small_letters_as_in_any(text: str) -> None:
    small = secret_names._small(text)
    found = [match.span() for match in secret_names._HINT.finditer(small)]
    assert found == [match.span() for match in AS_WRITTEN.finditer(text)]
    assert all(any(part in small for part in secret_names.NAME_PARTS) for _ in found)


def test_small_letters_stay_in_their_places() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    small = secret_names._small(every)
    assert len(small) == len(every)
    assert small[:128] == every[:128].lower()
    assert not re.search(r"[A-Za-z0-9_.-]", small[128:])


@pytest.mark.parametrize(
    "word",
    re.findall(
        r"\S+",
        "sh bash dash zsh ksh mksh ash fish csh tcsh eval printenv declare typeset local source xargs parallel watch "
        "ssh su python python3.11 perl ruby node php awk lua cmd powershell pwsh iex",
    ),
)
def test_each_means_to_run_is_seen(word: str) -> None:
    assert shown(f"PASSWORD=rm | {word} x", prose=True) == f"PASSWORD=rm | {word} x"
    assert secret_names._RUNNER.search(f"x {word} x")
    assert not secret_names._RUNNER.search(f"x.{word} x")


# --- beginnings --------------------------------------------------------------------------------------


def covered(found: list[Mask]) -> set[int]:
    return {at for each in found for at in range(each.start, each.end)}


@given(TEXTS, st.integers(0, 80), st.booleans())
@example(f"x {GH}", 8, True)
@example("https://ana:hunter2@host", 19, True)
def test_a_cut_uncovers_nothing(text: str, end: int, prose: bool) -> None:
    found = covered(masks_before(end, text, prose=prose))
    assert covered(masks(text[:end], prose=prose)) <= found
    across = [each for each in masks(text, prose=prose) if each.start < end < each.end]
    assert covered(across) <= found


@given(TEXTS, st.integers(0, 80), st.booleans())
def test_what_follows_the_window_changes_nothing(text: str, chars: int, prose: bool) -> None:
    whole = text + "x" * (chars + WINDOW_CHARS)
    assert shown_beginning(whole, chars, prose=prose) == shown_beginning(whole + " and more", chars, prose=prose)
    assert shown_beginning(text, len(text), prose=prose) == shown(text, prose=prose)
