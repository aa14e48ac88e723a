"""Engines behind the `Store` port. `open_store` finds one by the scheme of its URL."""
