"""Fills what a script leaves open with what the run printed: which value, and in which line of which log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.lines import LogLine, read_line, segments
from advisor.crash.log_reader import LogReader
from advisor.crash.read import read_logs
from advisor.crash.sources import open_sources
from advisor.hostile import clean_line
from advisor.knowledge import Knowledge
from advisor.language import say, say_count
from advisor.regex import regex
from advisor.run.natives import LOOSE, agreement, native, same_text
from advisor.script.document import Setting, Span
from advisor.script.launch import Launch

_SEARCHED = 64 << 20
"""Bytes of a log that are searched for the lines of its values; they stand at its beginning or in the crash."""
_MOST_REMARKS = 5
_TOKEN = regex(r"[{}]|['\"]([^'\"]{1,120})['\"]\s*:")
_NAMED = regex(r"(?:^|[\s'\"\[,(])[+]{0,2}(?:--?)?([A-Za-z_][\w./@-]*)(?==| \.{3}|\s+\S|['\"]|$)")


class Printed(Struct, frozen=True):
    """What logs print of a run's configuration: native key → text, and where each stands, as far as that is found."""

    values: Mapping[str, str]
    places: Mapping[str, Span]


def printed_in(logs: Sequence[Path], knowledge: Knowledge) -> Printed:
    """Read the configuration out of logs. Raises LogError for one that cannot be read."""
    frames = [rule for framework in knowledge.frameworks for rule in framework.frames]
    crash = read_logs(logs, knowledge.signatures, frames, ())
    values = {native(key): text for key, text in crash.settings.items()}
    return Printed(values, _places(logs, values))


def filled(launches: Sequence[Launch], printed: Printed) -> list[Launch]:
    """The launches, those that the log fits best with their open settings filled. A value that the script decides
    stays; where the log says otherwise, a note tells."""
    fits = [agreement(launch, printed.values) for launch in launches]
    best = max(fits, default=0)
    return [_with_log(one, printed) if fit == best else one for one, fit in zip(launches, fits, strict=True)]


def _with_log(launch: Launch, printed: Printed) -> Launch:
    settings = [_filled(setting, printed) for setting in launch.settings]
    if launch.missing or launch.leaves_open or not settings:
        there = {native(setting.key) for setting in settings}
        settings += [_from_log(key, printed) for key in printed.values if key not in there]
    count = sum(setting.origin == "log" for setting in settings)
    told = say_count(
        "{number} setting is known only from what the log printed.",
        "{number} settings are known only from what the log printed.",
        count,
    )
    notes = (*launch.notes, *([told] if count else []), *_contradictions(launch, printed))
    return replace(launch, settings=tuple(settings), notes=notes)


def _filled(setting: Setting, printed: Printed) -> Setting:
    key = native(setting.key)
    if setting.resolved or not setting.effective or key not in printed.values:
        return setting
    found = _from_log(key, printed)
    reason = say("the script leaves it open: {reason}", reason=setting.reason)
    return replace(found, key=setting.key, marker=setting.marker, reason=reason)


def _from_log(key: str, printed: Printed) -> Setting:
    reason = say("the script does not say")
    return Setting(key, printed.values[key], "log", span=printed.places.get(key), reason=reason)


def _contradictions(launch: Launch, printed: Printed) -> Iterator[str]:
    wrong = [
        (setting, printed.values[key])
        for setting in launch.effective().values()
        if (key := native(setting.key)) in printed.values
        and setting.resolved
        and setting.origin == "command"
        and not same_text(setting.text, printed.values[key])
    ]
    for setting, text in wrong[:_MOST_REMARKS]:
        place = printed.places.get(native(setting.key))
        told = {"key": setting.key, "here": clean_line(setting.text, 60), "there": clean_line(text, 60)}
        if place is None:
            yield say("{key} is {here} in the script, but the log printed {there}.", **told)
        else:
            at = f"{clean_line(Path(place.path).name)}:{place.line}"
            yield say("{key} is {here} in the script, but the log printed {there} ({place}).", **told, place=at)
    if len(wrong) > _MOST_REMARKS:
        yield say("{count} more settings differ from what the log printed.", count=len(wrong) - _MOST_REMARKS)


# --- where a value stands -----------------------------------------------------------------------------------------


def _places(logs: Sequence[Path], values: Mapping[str, str]) -> dict[str, Span]:
    """The first line that prints each value; of a key that is printed with other values too, the one with this."""
    exact: dict[str, Span] = {}
    near: dict[str, Span] = {}
    for source in open_sources([log for log in logs if str(log) != "-"]):
        stacks: dict[str, list[str]] = {}
        with LogReader(source) as reader:
            for line in _lines(reader):
                for key in _keys_of(line, stacks):
                    if key in values and key not in exact:
                        span = Span(source.name, line.number, 0, 0)
                        near.setdefault(key, span)
                        if LOOSE.sub("", values[key]).lower() in LOOSE.sub("", line.text).lower():
                            exact[key] = span
                if len(exact) == len(values):
                    break
    return {**near, **exact}


def _lines(reader: LogReader) -> Iterator[LogLine]:
    room = memoryview(bytearray(1 << 20))
    number, rest, seen = 0, b"", 0
    while seen < _SEARCHED and (count := reader.read_into(room)):
        seen += count
        *whole, rest = (rest + bytes(room[:count])).split(b"\n")
        for raw in whole:
            number += 1
            for part in (
                segments(raw) if any(sign in raw for sign in (b"=", b":", b" ..", b"--")) or b"}" in raw else ()
            ):
                yield read_line(part, number)
    for part in segments(rest):
        yield read_line(part, number + 1)


def _keys_of(line: LogLine, stacks: dict[str, list[str]]) -> Iterator[str]:
    """Keys that a line prints: of a dictionary under the names it is nested in, else as they stand."""
    text = line.text.strip()
    stack = stacks.setdefault(line.process, [])
    if text == "{" or text.startswith(("{'", '{"')) or text.endswith("= {"):
        stack.clear()
    name = ""
    for token in _TOKEN.finditer(text):
        if token[1] is not None:
            name = token[1]
            yield ".".join(filter(None, (*stack, name)))
        elif token[0] == "{":
            stack.append(name)
            name = ""
        elif stack:
            stack.pop()
    for found in _NAMED.finditer(text):
        yield found[1]
