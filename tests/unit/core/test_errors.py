"""What an error says where nobody gave it words."""

from __future__ import annotations

from signoff.errors import RequestNotFound, SignoffError
from signoff.server.faults import facts_of


class Wordless(SignoffError):  # as every class is under `python -OO`
    code = "wordless"


def test_without_docstrings_the_stable_word_has_to_do() -> None:
    assert (str(Wordless()), facts_of(Wordless("internal")).message) == ("wordless", "wordless")
    assert str(RequestNotFound()).startswith("No approval request")
