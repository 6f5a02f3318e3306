"""Finds the commands that a log prints: of a launcher, of Ray, of `set -x`, behind a prompt, in an error message.

Nothing is executed; what a command means is for the reader of launches to say.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from advisor.crash.lines import LogLine
from advisor.regex import regex
from advisor.script.launcher import find_launcher, is_other_work

_MOST_WORDS = 800
_MOST_LOOKED_AT = 200
"""Lines with a list of words or behind a prompt that are looked at."""
_MOST_LISTS = 8
"""Lists of one line that are looked at."""
_MOST_LINES = 200
"""Lines over which a command behind a prompt goes on."""
_STARTS = (
    "python", "torchrun", "deepspeed", "accelerate", "swift", "megatron", "llamafactory", "axolotl", "trl", "ray",
)  # fmt: skip
"""What stands in the first words of a command that starts a training."""
_BEHIND = regex(
    r"\bcmd = (?!\[)"  # deepspeed launcher/runner.py
    r"|\brun sh: `"  # ms-swift cli/main.py
    r"|\bRunning entrypoint for job [\w.-]{1,80}: "  # ray job_manager.py
    r"|^\++ (?=\S)"  # bash: set -x
    r"|^(?:\([\w.-]{1,40}\) ?)?(?:[\w.-]{1,60}@[\w.-]{1,60}[: ][^#$%>]{0,120})?[#$%] ?(?=[\w./])"  # a prompt
    r"|^!(?=\w)"  # a notebook's cell
)
_WORD = regex(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*(,|\]|\Z)""")
_LIST = regex(r"\[(?=['\"])")
_COMMAND = regex(rf"""['"][\w./~ -]{{0,200}}(?:{"|".join(_STARTS)})""")
"""The first word of a list that is a command."""
_PROMPTS_ON = regex(r"^> ?")
_RANK_OPTION = regex(r"--local[_-]rank(?:=.*)?")


_OF_A_LAUNCHER = ("exits with return code", "returned non-zero exit status", "died with <Signals.")
"""deepspeed launcher/launch.py; Python's subprocess.CalledProcessError."""


class PrintedCommand(Struct, frozen=True):
    """A command as shell text, and the line of the log that prints it. `whole` False: the line was cut before the
    command's end. `ranked`: it is the command of one rank, as a launcher starts it on each card."""

    text: str
    line: LogLine
    whole: bool = True
    ranked: bool = False


def commands_in(lines: Sequence[LogLine]) -> Iterator[PrintedCommand]:
    """The commands that start a training, in the order of the lines; of very many lines that may be one, the first."""
    left = _MOST_LOOKED_AT
    for number, line in enumerate(lines):
        if any(word in line.text for word in _STARTS) and (_LIST.search(line.text) or _BEHIND.search(line.text)):
            left -= 1
            found = _as_list(line) or _as_text(lines, number)
            if found is not None:
                yield found
            if not left:
                return


def words_of(text: str) -> list[str]:
    """The words of a command; where its quotes do not match, what blanks part."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _as_list(line: LogLine) -> PrintedCommand | None:
    """Words as Python prints them: `['python', '-u', 'train.py', …] exits with return code = 1`."""
    for opening in islice(_LIST.finditer(line.text), _MOST_LISTS):
        words: list[str] = []
        at, end = opening.end(), ","
        if _COMMAND.match(line.text, at) is None:
            continue
        while end == "," and len(words) < _MOST_WORDS and (word := _WORD.match(line.text, at)) is not None:
            words.append(_literal(word[1]))
            at, end = word.end(), word[2]
        kept = [word for word in words if not _RANK_OPTION.fullmatch(word)]
        if _trains(kept, named=len(kept) < len(words) or any(one in line.text for one in _OF_A_LAUNCHER)):
            return PrintedCommand(shlex.join(kept), line, end == "]", len(kept) < len(words))
    return None


def _literal(quoted: str) -> str:
    try:
        value = ast.literal_eval(quoted)
    except (ValueError, SyntaxError):
        return quoted[1:-1]
    return str(value)


def _as_text(lines: Sequence[LogLine], number: int) -> PrintedCommand | None:
    """Shell text behind what says that a command follows; at a prompt it may go on over several lines."""
    line = lines[number]
    marked = _BEHIND.search(line.text)
    if marked is None:
        return None
    text = line.text[marked.end() :]
    text = text.partition("`")[0] if marked[0].endswith("`") else text
    for below in lines[number + 1 : number + 1 + _MOST_LINES]:
        if not text.rstrip().endswith("\\"):
            break
        text = f"{text.rstrip()[:-1]} {_PROMPTS_ON.sub('', below.text)}"
    whole = not text.rstrip().endswith("\\")
    return PrintedCommand(text.rstrip("\\ "), line, whole) if _trains(words_of(text)) else None


def _trains(words: Sequence[str], *, named: bool = False) -> bool:
    """`named`: a launcher names what it ran, so that its name need not speak of training."""
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    found = find_launcher(words) if words else None
    if found is None or found.kind != "program":
        return False
    return found.trains or (named and not is_other_work(found.program))
