"""What tests of Signoff and of its extensions may build on: a clock that stands still, and the contract suites."""

from contextlib import suppress

# Without pytest the clock is still of use. This runs before any suite of the package is imported, as it must.
with suppress(ImportError):
    import pytest

    # Otherwise an assertion in an installed suite fails without saying what it compared.
    pytest.register_assert_rewrite(
        "signoff.testing.adapter_contract", "signoff.testing.store_contract", "signoff.testing.store_reads"
    )
