"""The first set-up: secrets as they are given, the binding of the first approver, and the file that is written."""
