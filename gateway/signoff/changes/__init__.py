"""The changes of the store: pure functions of a transaction, one module a verb. They may be run again."""
