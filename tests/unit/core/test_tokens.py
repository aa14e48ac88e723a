"""Signed tokens: they fit every platform's button, and nobody can make, change or move one."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.ids import random_text
from signoff.tokens import CHOICES, TOKEN_LENGTH, Signer, TokenParts

KEY, OLD, STRANGER = b"k" * 32, b"o" * 32, b"s" * 32
signer = Signer({7: KEY, 6: OLD}, 7)
copy_ids = st.binary(min_size=12, max_size=12).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
chats = st.text(max_size=40)
revisions = st.integers(0, 2**32 - 1)
choices = st.sampled_from(sorted(CHOICES))


@given(copy_ids, revisions, choices, chats)
def test_what_was_signed_is_read(copy_id: str, revision: int, choice: str, chat: str) -> None:
    token = signer.token(copy_id, revision, choice, "telegram", chat)
    assert len(token) == TOKEN_LENGTH == 47
    assert len(token.encode()) <= 64
    assert signer.verify(token, "telegram", chat) == TokenParts(copy_id, revision, choice)


@given(copy_ids, revisions, choices, chats, chats)
def test_a_token_belongs_to_its_chat(copy_id: str, revision: int, choice: str, chat: str, other: str) -> None:
    token = signer.token(copy_id, revision, choice, "telegram", chat)
    assert (signer.verify(token, "telegram", other) is None) == (other != chat)
    assert signer.verify(token, "discord", chat) is None


@given(copy_ids, choices, st.integers(0, 35 * 8 - 1))
def test_one_flipped_bit_is_a_forgery(copy_id: str, choice: str, bit: int) -> None:
    token = signer.token(copy_id, 3, choice, "telegram", "1")
    raw = bytearray(base64.urlsafe_b64decode(token + "="))
    raw[bit // 8] ^= 1 << bit % 8
    assert signer.verify(base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), "telegram", "1") is None


@given(copy_ids, st.data())
def test_one_other_character_decides_nothing_else(copy_id: str, data: st.DataObject) -> None:
    token = signer.token(copy_id, 3, "deny", "telegram", "1")
    at = data.draw(st.integers(0, 46))
    other = data.draw(st.characters().filter(lambda c: c != token[at]))
    # The last character holds two bits that stand for nothing; another spelling of them is no token of ours either.
    assert signer.verify(token[:at] + other + token[at + 1 :], "telegram", "1") is None


@given(st.text(max_size=80))
def test_noise_is_no_token(text: str) -> None:
    assert signer.verify(text, "telegram", "1") is None


def test_cut_long_and_padded() -> None:
    token = signer.token(random_text(12), 0, "once", "telegram", "1")
    assert signer.verify(token, "telegram", "1") is not None
    for other in (token[:-1], token[1:], token + "A", token + "=", " " + token[1:], token[:-1] + "\n", ""):
        assert signer.verify(other, "telegram", "1") is None


def test_the_previous_key_still_verifies_and_an_unknown_one_does_not() -> None:
    copy_id = random_text(12)
    old = Signer({6: OLD}, 6).token(copy_id, 1, "once", "telegram", "1")
    assert signer.verify(old, "telegram", "1") == TokenParts(copy_id, 1, "once")
    assert Signer({7: KEY}, 7).verify(old, "telegram", "1") is None, "the key was retired"
    forged = Signer({7: STRANGER}, 7).token(copy_id, 1, "once", "telegram", "1")
    assert signer.verify(forged, "telegram", "1") is None, "the key's id alone proves nothing"
    unknown = Signer({9: STRANGER}, 9).token(copy_id, 1, "once", "telegram", "1")
    assert signer.verify(unknown, "telegram", "1") is None


def test_numbers_of_choices_are_for_ever() -> None:
    assert len(set(CHOICES.values())) == len(CHOICES)
    known = ("once", "once_all", "session", "always", "30m", "deny", "more", "because", "why", "close", "wait", "undo")
    assert [CHOICES[name] for name in known] == list(range(1, 13))


@pytest.mark.parametrize("platform_and_chat", [("a", "b\x00c"), ("a\x00b", "c")])
def test_a_chat_that_looks_like_another_platform(platform_and_chat: tuple[str, str]) -> None:
    """No platform's key holds a NUL, so the two halves cannot be confused."""
    token = signer.token(random_text(12), 0, "once", "telegram", "1")
    assert signer.verify(token, *platform_and_chat) is None
