"""PowerShell where the programs of POSIX run: its commands as the floors of those know them."""

from msgspec.structs import replace

from signoff.policy.paths import PathFacts
from signoff.policy.shell import Command, Script, Word
from signoff.policy.windows_daily import goes_away


def as_posix(script: Script, facts: PathFacts) -> Script:
    """The commands with `~` written out, and with the folder they run in where none of them leaves it."""
    stays = not any(goes_away([word.text for word in command.words]) for command in script.commands if command.words)
    cwd = facts.start if stays else None

    def told(command: Command) -> Command:
        return replace(command, words=tuple(_written_out(word, facts.home) for word in command.words), cwd=cwd)

    return replace(script, commands=tuple(map(told, script.commands)))


def _written_out(word: Word, home: str | None) -> Word:
    if home is None or not (word.text == "~" or word.text.startswith("~/")):
        return word
    return Word(home + word.text[1:])
