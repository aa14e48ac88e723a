"""Measurements of this machine: what `signoff bench` prints. Nothing here is part of a running gateway."""
