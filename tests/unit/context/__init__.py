"""Tests of what surrounds a question: who asks, and who could answer."""
