"""Names of programs as systems install them: with a version, as an edition, or with the ending of Windows."""

import re

_ADDED = re.compile(r"[-_]?(?:\d+\.[\d.]*\d[td]|\d[\d.]*)\Z|\.(?:exe|appimage|basic|tiny|nox|athena|gtk[23]?)\Z")


_MAX_CHARS = 255
"""No file system in use takes longer names."""


def without_version(name: str) -> str:
    """The name without a version (`pip3.11`, `psql-15`, `python3.13t`), an edition (`vim.tiny`), and `.exe`."""
    if len(name) > _MAX_CHARS:
        return name
    return _ADDED.sub("", name.removesuffix(".exe"))
