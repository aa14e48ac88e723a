"""What the options and operands of many programs name to be written, as one question for all of them."""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from signoff.policy.path_classes import CLASSES
from signoff.policy.predicates.files import OUTPUT_STARTS, sort_of
from signoff.policy.predicates.program_options import option_names, values_of
from signoff.policy.predicates.secrets import KEEPS_SECRETS
from signoff.policy.predicates.whole import per_command
from signoff.policy.seen import Seen
from signoff.policy.shell import Word
from signoff.policy.shell.options import Marks

_DECIDES = frozenset({"startup", "ssh", "policy", "system", "programs"})

_ANY = (
    "--output", "--out", "--outfile", "--out-file", "--outFile", "--output-file", "--output-dir", "--out-dir",
    "--outDir", "--outdir", "--output-path", "--output-directory", "--stderr", "--stdout", "--etag-save", "--hsts",
    "--alt-svc", "--libcurl", "--junitxml", "--junit-xml", "--junit-report", "--result-log", "--report-file",
    "--report-log", "--redirect-warnings", "--save-cookies", "--directory-prefix", "--append-output",
    "--write-out-file", "--log", "--log-file", "--logfile", "--log-out", "-Logfile", "-logfile", "-out", "-keyout",
    "--tsBuildInfoFile", "--dump", "--declarationDir", "--trace-event-file-pattern", "--cpu-prof-dir",
    "--heap-prof-dir", "--report-dir", "--save", "--diagnostic-dir", "--cov-report", "--html", "--dest",
    "--destination", "--export", "--write", "--record",
)  # fmt: skip
"""Options by which programs are told what to write; whoever has one of these names means that by it."""

_SHORT: dict[str, tuple[str, ...]] = {
    "curl": ("-o", "-D", "-c"),
    "wget": ("-O", "-P", "-a", "-o"),
    "aria2c": ("-o", "-d", "-l", "--dir"),
    "unzip": ("-d",),
    "7z": ("-o",),
    "7za": ("-o",),
    "unrar": ("-op",),
    "patch": ("-d", "--directory", "-o", "-r", "--reject-file"),
    "csplit": ("-f", "--prefix"),
    "openssl": ("-out", "-keyout"),
    "script": ("-I", "-O", "-B", "-T"),
    "gcc": ("-o",),
    "cc": ("-o",),
    "go": ("-o",),
    "strace": ("-o",),
    "pdftotext": ("-o",),
    "pg_dump": ("-f", "--file"),
    "time": ("-o",),
    "bsdtar": ("-C", "--directory"),
    "cpio": ("-D", "--directory", "-F", "--file", "-O"),
    "rsync": ("--write-batch", "--only-write-batch", "--backup-dir"),
    "unsquashfs": ("-d",),
    "git": ("-f", "--file", "--output-directory"),
}
_ANY_NAMES = option_names(_ANY)
_NAMES = {name: option_names((*_ANY, *more)) for name, more in _SHORT.items()}


def _named(seen: Seen) -> list[Word]:
    """The values of options that name what is written."""
    found = values_of(seen, _NAMES.get(seen.name, _ANY_NAMES), clustered=True)
    if seen.name in {"tar", "gtar"} and _unpacks(seen):
        found += values_of(seen, ("-C", "--directory", "--one-top-level"))
    if seen.name == "curl":
        for word in values_of(seen, ("-w", "--write-out")):
            found += [Word(match.group(1)) for match in _CURL_OUTPUT.finditer(word.text)]
    return found


_CURL_OUTPUT = re.compile(r"%output\{>{0,2}([^}]{1,4096})\}")


def _unpacks(seen: Seen) -> bool:
    first = seen.words[1].text if len(seen.words) > 1 else ""
    if not first.startswith("-"):
        return "x" in first
    dashed = (word.text for word in seen.words[1:] if word.text[:1] == "-" and word.text[1:2] != "-")
    return seen.has("--extract", "--get") or any("x" in text for text in dashed)


def _joined(seen: Seen) -> Iterator[Word]:
    """Names within a folder that another option gives, or that the address gives."""
    if seen.name == "curl":
        folders, names = values_of(seen, ("--output-dir",)), values_of(seen, ("-o", "--output"), clustered=True)
        if seen.has("-O", "--remote-name", "--remote-name-all"):
            folders = folders or [Word(".")]
    elif seen.name == "aria2c":
        folders, names = values_of(seen, ("-d", "--dir")), values_of(seen, ("-o", "--out"))
    elif seen.name == "wget":
        folders, names = values_of(seen, ("-P", "--directory-prefix")) or [Word(".")], []
    else:
        return
    last = [Word(word.text.partition("?")[0].rpartition("/")[2]) for word in seen.operands]
    for folder in folders:
        for name in (*names, *last):
            if name.text:
                yield Word(f"{folder.text.rstrip('/')}/{name.text}")


_GIT_PLACES: dict[str, int] = {"clone": 1, "worktree": 1, "bundle": 1, "init": 0, "submodule": 2, "mv": 0, "rm": 0}
"""How many operands stand before the one that git writes, behind these subcommands."""


def _operands(seen: Seen) -> Iterator[Word]:
    """Operands that are written, where no other row about the program looks at them."""
    operands, name = seen.operands, seen.name
    if name == "git" and operands:
        behind = operands[1:]
        for word in behind[_GIT_PLACES.get(operands[0].text, len(behind)) :]:
            yield from (word, Word(f"{word.text.rstrip('/')}/x"))  # where it is a folder
    elif name in {"split", "gsplit", "csplit", "gcsplit"}:
        yield from operands[1:]
    elif name in {"script", "mkfifo", "mknod"}:
        yield from operands[:1]
    elif name == "cpio" and seen.has("-p", "--pass-through"):
        for word in operands[-1:]:
            yield from (word, Word(f"{word.text.rstrip('/')}/x"))
    elif name == "history" and seen.flags & {"-a", "-w"}:
        yield from seen.words[2:3]
    elif name in _LAST:
        yield from operands[-1:]
    elif name in _COPY_NAMES:
        for word in operands[-1:]:
            yield from (word, Word(f"{word.text.rstrip('/')}/x"))


def _patched(seen: Seen) -> Iterator[Word]:
    """The files that a patch changes which is written out for `patch` or `git apply`."""
    if seen.command.stdin is None or (seen.name == "git" and seen.texts[:1] not in (["apply"], ["am"])):
        return
    for match in islice(_PATCHED.finditer(seen.command.stdin), _MAX_PATCHED):
        name = match.group(1).strip('"')
        yield Word(name)
        if not name.startswith("/"):
            yield Word(name.partition("/")[2])  # without its `a/` or `b/`


_PATCHED = re.compile(r"^(?:\+\+\+|---|rename to|copy to) ([^\t\n]{1,4096})", re.M)
_MAX_PATCHED = 256
"""Of more files in one patch only so many are looked at."""

_COPY_NAMES = frozenset({"copy", "copy_if_different", "copy_directory", "rename", "create_symlink", "create_hardlink"})
"""What `cmake -E` copies with."""


_LAST = frozenset({"objcopy", "strip", "convert", "magick", "ffmpeg", "sox", "inkscape", "pdftotext", "pngquant"})
"""Programs that write the last of their operands."""

_WRITE_OPERANDS = (
    _COPY_NAMES
    | _LAST
    | frozenset(
        {
            "git",
            "cpio",
            "split",
            "gsplit",
            "csplit",
            "gcsplit",
            "script",
            "mkfifo",
            "mknod",
            "history",
            "curl",
            "wget",
            "aria2c",
        }
        | {"patch"}
    )
)
"""Programs that write what stands among their operands."""


def _reads_only(seen: Seen) -> bool:
    """`git config -f FILE --get NAME`, with a name and no value, and lists."""
    if seen.name != "git" or seen.texts[:1] != ["config"]:
        return False
    reading = seen.has("--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch")
    return reading or len(seen.texts) < 3


_MARKED: dict[str, tuple[str, ...]] = _SHORT | {
    "tar": ("-C", "--directory", "--one-top-level"),
    "gtar": ("-C", "--directory", "--one-top-level"),
    "curl": ("-o", "-D", "-c", "-w", "--write-out", "--cookie-jar", "--trace", "--remote-name"),
}
_MARKS = Marks((*_ANY, *OUTPUT_STARTS))
_MARKS_OF = {name: Marks((*_ANY, *OUTPUT_STARTS, *more)) for name, more in _MARKED.items()}


def _may_be_named(seen: Seen) -> bool:
    """Whether an option may name what is written."""
    return _MARKS_OF.get(seen.name, _MARKS).may_be_in(seen.words)


@per_command
def _written(seen: Seen) -> list[Word]:
    """All that options and operands name to be written."""
    words = _named(seen) if _may_be_named(seen) else []
    if seen.name in _WRITE_OPERANDS:
        words += [*_joined(seen), *_operands(seen), *_patched(seen)]
    return words


def _writes_what_matters(seen: Seen) -> bool:
    """A start-up, login, instruction, system or program file, or one within a home folder, is written."""
    words = _written(seen)
    if not words or _reads_only(seen):
        return False
    return any(sort_of(word, seen) in _DECIDES for word in words)


def _unpacks_over_home(seen: Seen) -> bool:
    """A home folder itself as the place to unpack or patch in: which files that changes stands in the archive."""
    words = _unpacked_into(seen)
    facts = seen.facts.paths
    places = words or ([Word(seen.cwd)] if seen.cwd is not None and _unpacks_here(seen) else [])
    return any(
        CLASSES["home"](word, seen.cwd, facts)
        or KEEPS_SECRETS.match(word.text) is not None
        or sort_of(word, seen) in _DECIDES
        for word in places
    )


_TARS = frozenset({"tar", "gtar", "bsdtar", "star", "tarsnap"})
_PLACES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TARS, ("-C", "--directory", "--one-top-level")),
    **dict.fromkeys(("unzip", "7z", "7za", "7zz", "patch", "unsquashfs", "bsdunzip"), ("-d", "-o", "--directory")),
    "cpio": ("-D", "--directory"),
    "ar": ("--output",),
    "unrar": ("-op",),
    "unar": ("-o", "-output-directory"),
    "jar": ("-C", "--dir"),
    "cabextract": ("-d", "--directory"),
    "innoextract": ("-d", "--output-dir"),
    "msiextract": ("-C", "--directory"),
    "ouch": ("-d", "--dir"),
    "aunpack": ("-X", "--extract-to"),
    "atool": ("-X", "--extract-to"),
    "patool": ("--outdir",),
    "dar": ("-R", "--fs-root"),
    "stow": ("-t", "--target"),
}
"""The options that name where a program unpacks."""

_BY_VERB = {
    **dict.fromkeys(("7z", "7za", "7zz", "unrar", "arj", "unace"), ("x", "e")),
    "ar": ("x",),
    "jar": ("x", "xf", "xvf", "xfv"),
    "asar": ("extract", "e"),
    "patool": ("extract",),
    "ouch": ("decompress", "d"),
}
"""The first words with which these unpack."""

_EXTRACTING = ("-x", "-X", "-R", "-e", "--extract", "--vextract", "--raw-extract", "--control")
_BEHIND_ARCHIVE = frozenset({"unrar", "arj", "unace", "asar", "dpkg", "dpkg-deb", "tarfile", "zipfile"})
"""Programs that are told of the place behind the archive."""


def _unpacked_into(seen: Seen) -> list[Word]:
    """Where it is told to unpack."""
    if seen.name in _TARS and not _unpacks(seen):
        return []
    words = values_of(seen, _PLACES.get(seen.name, ()))
    if seen.name in _BEHIND_ARCHIVE and _unpacks_here(seen):
        words += seen.operands[(2 if seen.name in _BY_VERB else 1) :]
    return words


def _unpacks_here(seen: Seen) -> bool:
    """Whether it unpacks, where no place is told."""
    if seen.name in _TARS:
        return _unpacks(seen)
    if seen.name in _BY_VERB:
        return seen.texts[:1] != [] and seen.texts[0] in _BY_VERB[seen.name]
    if seen.name in {"dpkg", "dpkg-deb", "tarfile", "zipfile"}:
        return seen.has(*_EXTRACTING)
    if seen.name in {"cpio", "pax"}:
        return any(re.fullmatch(r"-[ir][a-np-z]*", word.text) for word in seen.words)
    return seen.name in {"unar", "dtrx", "aunpack", "cabextract"} or (
        seen.name in {"unzip", "bsdunzip"} and not seen.has("-l", "-t", "-p", "-v", "-Z")
    )


PREDICATES: dict[str, Callable[[Seen], bool]] = {
    "writes_what_matters": _writes_what_matters,
    "unpacks_over_home": _unpacks_over_home,
}


def _may_write(seen: Seen) -> bool:
    """Whether an option or an operand may name what is written."""
    return _may_be_named(seen) or (seen.name in _WRITE_UNTOLD and bool(_written(seen)))


_WRITE_UNTOLD = _WRITE_OPERANDS - {"curl", "aria2c"}
"""Those that need no option to do so."""


NEEDS: dict[str, Callable[[Seen], bool]] = dict.fromkeys(("writes_what_matters", "output_option_sensitive"), _may_write)
