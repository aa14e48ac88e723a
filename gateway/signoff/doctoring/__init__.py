"""What keeps a gateway from working, found before or beside it; every finding says how to mend it."""

from signoff.doctoring.examining import examine
from signoff.doctoring.rows import Row, without_secrets

__all__ = ["Row", "examine", "without_secrets"]
