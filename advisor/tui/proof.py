"""Words what the logs prove: the verdict in a sentence, and each claim beside the line that proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.crash.evidence import HEARD_OTHERWISE, Crash, Evidence, EvidenceRole, TopUser
from advisor.crash.lines import peel
from advisor.hostile import cells
from advisor.language import listed, mark, say
from advisor.line_breaks import cut, cut_left
from advisor.tui.ui_text import (
    BLANK,
    COUNTED_FROM_THE_END,
    Row,
    Tone,
    grouped,
    heading,
    lead,
    line,
    paragraph,
    span,
    spread,
)
from advisor.units import GIB, show_bytes
from advisor.words import MEMORY_TITLES, when, when_either

if TYPE_CHECKING:
    from advisor.state import State

Titles = Mapping[str, str]
"""Signature id → what such a line means."""
_RANK: dict[EvidenceRole, int] = {"cause": 0, "telemetry": 1, "progress": 2}
FULL = 4
"""Lines of the decisive line itself on the first frame: the log has all of it (o)."""
TOP_USERS = "ray-top-users"
"""Signature of Ray's table of memory users."""
_LETTERS: dict[EvidenceRole, str] = {"telemetry": "M", "warning": "M", "progress": "P"}
LEGEND = mark("E error  M memory  P progress  C config")


_PAIRS = (
    ("free_bytes", "total_bytes", mark("{part} free"), mark("{part} of {whole} free")),
    ("node_used_bytes", "node_total_bytes", mark("{part} in use"), mark("{part} of {whole} in use")),
)
"""Fields that belong together, in words: the part alone, and the part of its whole."""


def letter_of(role: EvidenceRole) -> str:
    """The gutter letter of a piece of evidence."""
    return _LETTERS.get(role, "E")


def headline(crash: Crash, logs: bool = True) -> str:
    """The first line of the first screen: which memory ran out, and during what. `logs`: some were given."""
    during = when(crash.phase) if crash.phase != "unknown" else ""
    if crash.verdict == "oom":
        return _ran_out(crash, during)
    if crash.verdict == "not_oom" and not crash.signature:
        return say("Nothing in the log failed.")
    if crash.is_hearsay and crash.verdict == "not_oom":
        return say(HEARD_OTHERWISE, line=crash.evidence[0].line)
    if crash.verdict == "not_oom" and during:
        return say("This was not a shortage of memory {when}.", when=during)
    if crash.verdict == "not_oom":
        return say("This was not a shortage of memory.")
    if not logs:
        return say("No log was given, so nothing is proved about a crash.")
    if not crash.lines_read:
        return say("The log is empty, so nothing is proved about a crash.")
    why = lead(crash.unclear_because, 0)[0].rstrip(".。") or say("no decisive line was found")
    if during:
        return say("The log does not prove what ran out {when}: {why}.", when=during, why=why)
    return say("The log does not prove what ran out: {why}.", why=why)


def first_verdict_rows(crash: Crash, width: int) -> list[Row]:
    """The headline and the lines that prove it, before a session knows more: where they will stand, and in full."""
    out = [*paragraph(headline(crash), width, tone="strong"), BLANK, *proof_rows(crash, {}, width, 3)]
    if not crash.evidence:
        return out
    end = [BLANK, *paragraph(say(COUNTED_FROM_THE_END), width, tone="dim")] if crash.preliminary else []
    return [*out, BLANK, *paragraph(crash.evidence[0].text, width, tone="dim")[:FULL], *end]


def loading_rows(reading: str, ends: Crash | None, width: int) -> list[Row]:
    """What is shown until a session is open: what is being read, below what the ends of the logs prove already."""
    if ends is None:
        return paragraph(reading, width, tone="strong")
    return [*first_verdict_rows(ends, width), BLANK, *paragraph(reading, width, tone="dim")]


def _ran_out(crash: Crash, during: str) -> str:
    if not during and crash.phase_among:
        during = say("{when} (the log does not show which)", when=when_either(crash.phase_among))
    gpu = crash.evidence[0].fields.get("gpu") if crash.evidence and crash.memory == "gpu" else None
    memory = MEMORY_TITLES[crash.memory]
    if gpu is None:
        if during:
            return say("{memory} ran out {when}.", memory=memory, when=during)
        return say("{memory} ran out.", memory=memory)
    if during:
        return say("{memory} ran out on GPU {gpu} {when}.", memory=memory, gpu=gpu, when=during)
    return say("{memory} ran out on GPU {gpu}.", memory=memory, gpu=gpu)


def titles_of(state: State) -> Titles:
    """Signature id → what such a line means."""
    return {one.id: one.title for one in state.knowledge.signatures.signatures}


def evidence_words(crash: Crash, titles: Titles, evidence: Evidence) -> str:
    """What the line printed in numbers, and what it means; the line itself where it printed none."""
    if evidence.signature == TOP_USERS and crash.top_users:
        return holder_words(crash.top_users)
    numbers = listed(_numbers(evidence.fields))
    again = " " + say("(× {count})", count=evidence.repeats + 1) if evidence.repeats else ""
    if not numbers or evidence.role not in ("cause", "echo"):
        return f"{evidence.text}{again}"
    meaning = titles.get(evidence.signature, evidence.text)
    return say("{numbers}: {meaning}", numbers=f"{numbers}{again}", meaning=meaning)


def _numbers(fields: Mapping[str, int | float | str]) -> list[str]:
    out = []
    if "tried_bytes" in fields:
        out.append(say("asked {size}", size=_shown(fields["tried_bytes"])))
    for part, whole, bare, both in _PAIRS:
        if part in fields and whole in fields:
            out.append(say(both, part=_shown(fields[part]), whole=_shown(fields[whole])))
        elif part in fields:
            out.append(say(bare, part=_shown(fields[part])))
    if "threshold" in fields:
        out.append(say("threshold {value}", value=fields["threshold"]))
    return out


def _shown(value: int | float | str) -> str:
    return show_bytes(value) if isinstance(value, int) else str(value)


def ordered_evidence(crash: Crash) -> list[int]:
    """Indices of evidence, most telling first: the first cause, who held the memory, the last reading, the last phase
    mark, then the others. What a line says besides is left out: the line is there once."""
    if not crash.evidence:
        return []
    telling = [0]
    telling += [at for at, one in enumerate(crash.evidence) if crash.top_users and one.signature == TOP_USERS][:1]
    for role in ("telemetry", "progress"):
        of_role = [at for at, one in enumerate(crash.evidence) if one.role == role]
        telling += sorted(of_role, key=lambda at: crash.evidence[at].line)[-1:]
    others = sorted(range(len(crash.evidence)), key=lambda at: (_RANK.get(crash.evidence[at].role, 3), at))
    found: dict[tuple[str, int], int] = {}
    for at in (*telling, *others):
        found.setdefault((crash.evidence[at].file, crash.evidence[at].line), at)
    return list(found.values())


def proof_rows(crash: Crash, titles: Titles, width: int, most: int = 6) -> list[Row]:
    """What the log proves; the cursor stands on these."""
    if not crash.evidence:
        return []
    ordered = ordered_evidence(crash)
    total = len(ordered)
    title = say("What the log says" if crash.is_hearsay else "What the log proves")
    if total > most:
        title = say("What the log proves ({shown} of {total})", shown=most, total=total)
    out = [heading(title, say("line"), width)]
    many = len({evidence.file for evidence in crash.evidence}) > 1
    for at in ordered[:most]:
        evidence = crash.evidence[at]
        letter = "M" if evidence.signature == TOP_USERS else letter_of(evidence.role)
        number = grouped(evidence.line)
        if many:
            number = f"{cut_left(evidence.file, 14)} {number}"
        words = _in_room(crash, titles, evidence, width - 5 - len(number) - 2)
        tone: Tone = "bad" if letter == "E" else "plain"
        row = spread(line(span(letter, tone), f" {words}"), line(span(number, "dim")), width - 2)
        out.append(Row(row, f"evidence {at}"))
    return out


def _in_room(crash: Crash, titles: Titles, evidence: Evidence, room: int) -> str:
    """The words of a piece of evidence; where they are too many, without what a logger printed before them."""
    words = evidence_words(crash, titles, evidence)
    if cells(words) > room and words.startswith(evidence.text) and evidence.role != "progress":
        words = (peel(evidence.text).text or evidence.text) + words.removeprefix(evidence.text)
    return cut(words, room)


def holder_words(users: Sequence[TopUser]) -> str:
    """ "top holders: 8 × Worker.update_actor, 68.4 GiB each": the command that holds most, and how often it runs."""
    by_command: dict[str, list[int]] = {}
    for user in users:
        by_command.setdefault(user.command, []).append(user.used_bytes)
    command, sizes = max(by_command.items(), key=lambda item: sum(item[1]))
    average = f"{sum(sizes) / len(sizes) / GIB:.1f} GiB"
    if len(sizes) == 1:
        return say("top: {command}, {size}", command=command, size=average)
    return say("top holders: {count} × {command}, {size} each", count=len(sizes), command=command, size=average)
