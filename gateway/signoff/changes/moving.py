"""A chat got another id: what is shown there and who works there follow it."""

from __future__ import annotations

from signoff.changes.delivering import card_anew, row_of, speaks
from signoff.model import Copy, Destination, Note, Session, replace
from signoff.ports import Tx
from signoff.rows import joined, place_key


def move_chat(tx: Tx, profile: str, platform: str, old_chat: str, new_chat: str, *, told: bool = False) -> None:
    """A chat got a new id: unsent copies go there, open cards are posted anew, each once, and its sessions are there.

    The new id is kept until `forget`, since an agent may go on naming its session's place by the old one. `told`: the
    platform says so by itself, which is rare. The sessions of threads in which nothing is open are looked for then too,
    among all of the profile.
    """
    tx.put(Note(name=_note_name(profile, platform, old_chat), value=new_chat))
    tx.put(Note(name=_old_name(profile, platform, new_chat), value=old_chat))
    anew: set[tuple[str, Destination]] = set()
    places = {Destination(platform, old_chat)}
    for copy in tx.find(Copy, "open_chat", joined(profile, platform, old_chat)):
        places.add(copy.destination)
        place = replace(copy.destination, chat_id=new_chat)
        if copy.state == "queued" or (copy.state == "sending" and copy.message_id is None):
            due = None if copy.digest is not None else tx.now  # a listed card goes with its digest
            tx.put(replace(copy, destination=place, state="queued", due_at=due, lease_until=None))
            continue
        tx.put(replace(copy, state="failed", due_at=None, error="the chat moved"))
        row = row_of(tx, copy)
        if copy.kind == "card" and row is not None and speaks(row) and (row.request_id, place) not in anew:
            anew.add((row.request_id, place))
            moved = tuple(place if d == copy.destination else d for d in row.destinations)
            tx.put(replace(row, destinations=moved))
            tx.put(card_anew(row, copy, place, tx.now))
    if told:
        sessions = tx.find(Session, "profile", profile)
    else:
        sessions = [each for place in places for each in tx.find(Session, "place", place_key(profile, place))]
    for session in sessions:
        _move_session(tx, session, platform, old_chat, new_chat)


def place_now(tx: Tx, profile: str, place: Destination) -> Destination:
    """The place under the id that its chat has now, as far as is known. A chat moves once: a supergroup stays one."""
    moved = tx.get(Note, _note_name(profile, place.platform, place.chat_id))
    return place if moved is None else replace(place, chat_id=moved.value)


def forget(tx: Tx, profile: str, place: Destination) -> None:
    """The chat is out of reach, so whoever names it by its old id is to learn anew where it is: a person's direct chat
    is one bot's alone, and another bot has another."""
    if place.thread_id is not None:
        return
    old = tx.get(Note, _old_name(profile, place.platform, place.chat_id))
    if old is None:
        return
    tx.delete(old)
    moved = tx.get(Note, _note_name(profile, place.platform, old.value))
    if moved is not None and moved.value == place.chat_id:
        tx.delete(moved)


def _note_name(profile: str, platform: str, old_chat: str) -> str:
    return f"moved:{joined(profile, platform, old_chat)}"


def _old_name(profile: str, platform: str, new_chat: str) -> str:
    return f"moved_here:{joined(profile, platform, new_chat)}"


def _move_session(tx: Tx, session: Session, platform: str, old_chat: str, new_chat: str) -> None:
    """Its place is where `stop` and the like find it."""
    own, said_in = (
        replace(place, chat_id=new_chat)
        if place is not None and (place.platform, place.chat_id) == (platform, old_chat)
        else place
        for place in (session.destination, session.bypass_place)
    )
    if session.closed_at is None and (own, said_in) != (session.destination, session.bypass_place):
        tx.put(replace(session, destination=own, bypass_place=said_in))
