"""The code is broken on purpose, and the suite must notice."""
