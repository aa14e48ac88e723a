"""Tests of the project, and the loopback platforms they run against."""
