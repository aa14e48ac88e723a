"""Where a gateway is said to be, and with which key: what is wrong is told at once and names the variable."""

from __future__ import annotations

import pytest

from signoff.client import Client
from signoff.errors import InvalidInput


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SIGNOFF_KEY": "sk_a_b\n"}, "SIGNOFF_KEY holds"),
        ({"SIGNOFF_KEY": "sk_a_ü"}, "SIGNOFF_KEY holds"),
        ({"SIGNOFF_PROFILE": "a\rb"}, "SIGNOFF_PROFILE holds"),
        ({"SIGNOFF_URL": "http://ann:hunter2@127.0.0.1:8787"}, "SIGNOFF_URL holds a user or a password"),
        ({"SIGNOFF_URL": "ann:hunter2@127.0.0.1:8787"}, "SIGNOFF_URL: It is not"),
        ({"SIGNOFF_URL": "http://127.0.0.1:87870"}, "SIGNOFF_URL is not"),
        ({"SIGNOFF_URL": "http://[::1"}, "SIGNOFF_URL is not"),
        ({"SIGNOFF_URL": "http://"}, "SIGNOFF_URL is not"),
        ({"SIGNOFF_URL": "http://127.0.0.1\n:8787"}, "SIGNOFF_URL is not"),
        ({"SIGNOFF_URL": "http://127.0.0.1?x=hunter2"}, "SIGNOFF_URL is not"),
    ],
)
def test_a_wrong_variable_is_named_and_not_repeated(variables: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Client(environ=variables)
    assert refused.value.message.startswith(told)
    assert "hunter2" not in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("url", ["http://127.0.0.1:8787/", "https://gate.example", "http://[::1]:8787"])
def test_an_address_may_have_these_forms(url: str) -> None:
    assert repr(Client(url, environ={})._link.address.shown) == repr(url.rstrip("/"))


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(InvalidInput, match="url is not the address"):
        Client("http://localhost:8787/v1", environ={})
    with pytest.raises(InvalidInput, match="key holds a space, a line break") as refused:
        Client(key="sk_a_b\r\nX: y", environ={})
    assert refused.value.param == "key"


async def test_the_key_is_not_in_a_repr() -> None:
    client = Client("http://127.0.0.1:9", "sk_id_secret", environ={})
    assert "secret" not in repr(client._link.address)
