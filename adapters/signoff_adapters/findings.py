"""What a check-up of every platform may find."""

from __future__ import annotations

from signoff.errors import AdapterError, AdapterFatal
from signoff.ports import Finding


def nobody(error: AdapterError, platform: str, token: str) -> Finding:
    """The platform did not say who we are. `token` is how to mend a refused one."""
    if isinstance(error, AdapterFatal):
        return Finding.problem("token", error.message, token)
    mend = f"Let this machine reach it (network, proxy), or mend platforms.{platform}.api_base_url."
    return Finding.problem("connection", error.message, mend)


def unclear(about: str, title: str, error: Exception) -> Finding:
    """Asking failed, which may pass. `title` is the platform's name for people."""
    return Finding.warning(about, f"{title} did not say ({error}).", "Try again in a minute.")
