"""Rules as data."""
