"""Telling why: trees, rules, rungs, imports and replays."""
