"""The tool gate, kept actions and their executors."""
