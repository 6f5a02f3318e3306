"""Writes the report beside a patched script: why every change, how sure, and what was not done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor import __version__
from advisor.crash.evidence import Crash, Evidence
from advisor.diagnosis.diagnosis import UNKNOWN, CaseMatch, Diagnosis, QuestionStep
from advisor.hostile import clean_line
from advisor.language import Sayings, clauses, listed, say, sentences
from advisor.memory.cells import Ledger, Place
from advisor.plan.plan import Change, Plan, PlanStep
from advisor.redact import redact
from advisor.regex import regex
from advisor.report import phrases
from advisor.report.phrases import machine_line
from advisor.report.sharing import shareable
from advisor.units import show_gib
from advisor.words import BASIS_TITLES, PHASE_TITLES, sentence

if TYPE_CHECKING:
    from advisor.state import State

_SPECIAL = regex(r"([\\`*_{}\[\]<>#|~!])")
_RUNS_OF_TICKS = regex(r"`+")


def text(value: str, limit: int = 600) -> str:
    """Words from outside as Markdown that shows them as they are: no links, tags, emphasis or tables of their own."""
    return _SPECIAL.sub(r"\\\1", redact(clean_line(value, limit)))


def code(value: str, limit: int = 600) -> str:
    """A code span, fenced by more backticks than the value holds."""
    value = redact(clean_line(value, limit)).replace("|", "¦")
    if not value:
        return say("(empty)")
    fence = "`" * (1 + max((len(run) for run in _RUNS_OF_TICKS.findall(value)), default=0))
    edge = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{fence}{edge}{value}{edge}{fence}"


def markdown_report(state: State, wrote: str = "") -> str:
    """The whole explanation. `wrote`: name of the patched file, where one was written."""
    return shareable("\n".join(part for part in markdown_parts(state, wrote) if part).rstrip("\n") + "\n")


def markdown_parts(state: State, wrote: str = "") -> tuple[str, str, str]:
    """The explanation in three: what happened to which run, what changes, and everything else."""
    rest = [
        _offered(state.plan),
        _proof(state.crash),
        _cause(state.diagnosis),
        _memory(state.ledger, state.plan),
        _section(say("Ruled out"), [_reason(one.title, one.because) for one in state.diagnosis.ruled_out]),
        _section(say("Less likely"), [_reason(one.title, one.because) for one in state.diagnosis.less_likely]),
        _section(say("Not proposed"), [_reason(one.title, one.because) for one in state.plan.not_proposed]),
        _section(say("Documented cases like this one"), [f"- {_case(case)}" for case in state.diagnosis.cases]),
        _section(say("What to record next time"), [text(state.diagnosis.record_next_time)]),
        _foot(state),
    ]
    return _head(state, wrote), _changes(state.plan), "\n".join(part for part in rest if part)


def _section(title: str, lines: Iterable[str]) -> str:
    body = list(lines)
    return "\n".join([f"## {title}", "", *body, ""]) if any(body) else ""


def _reason(title: str, because: str) -> str:
    return "- " + say("**{title}**: {because}", title=text(title), because=text(because))


def _head(state: State, wrote: str) -> str:
    name = wrote or (state.asked.script.name if state.asked.script else say("this run"))
    lines = [
        "# " + say("Why it ran out of memory, and what changes: {name}", name=text(name)),
        "",
        f"**{text(phrases.verdict(state))}**",
        "",
    ]
    lines += [text(remark) for remark in phrases.remarks(state)]
    if state.crash.verdict == "unclear":
        lines += [
            text(phrases.why_unclear(state)),
            *("- " + say("To settle it: {hint}", hint=text(hint)) for hint in state.crash.settle_by),
        ]
    lines += [
        "",
        "- " + say("Run: {run}", run=text(phrases.subject(state.run))),
        *(["- " + text(told)] if (told := phrases.recognised(state.run)) else []),
        "- "
        + say(
            "Machine: {machine}", machine=text(machine_line(state.machine, state.run.topology, state.crash.platform))
        ),
    ]
    lines += ["- " + say("Note: {note}", note=text(note)) for note in (*state.run.notes, *state.machine.problems)]
    return "\n".join([*lines, ""])


# --- changes -------------------------------------------------------------------------------------------------------


def _changes(plan: Plan) -> str:
    chosen = plan.selected()
    lines = [text(phrases.fits_words(plan)), ""] if plan.steps else []
    for number, step in enumerate(chosen, 1):
        lines += [f"### {number}. {text(step.title)}", "", *_step(step), ""]
    return _section(say("What changes"), lines if chosen else [say("Nothing was selected."), *lines])


def _step(step: PlanStep) -> list[str]:
    """What, where, why, what it saves, what it costs, whether results change, how sure and from where."""
    stay, saved = step.results == "unchanged", clauses(phrases.savings(step))
    lines = [
        *(say("What: {change}", change=_what(change)) for change in step.changes),
        *([text(say("for example {example}", example=step.example))] if step.example else []),
        say("Why: {why}", why=text(step.why)),
        say("Saves: {saved}", saved=text(saved or say("not computed"))),
        say("Costs: {costs}", costs=text(step.costs or say("nothing known"))),
        say("Training results: stay the same") if stay else say("Training results: change"),
        say("How sure: {basis}", basis=phrases.BASIS_WORDS[step.basis]),
        *([text(sentence(step.worked_here))] if step.worked_here else []),
        *([say("Documented: {case}", case=text(step.documented))] if step.documented else []),
        *(say("Note: {note}", note=text(caveat)) for caveat in step.caveats),
        *(say("From: {source}", source=text(source)) for source in step.sources),
        say("Id: {id}", id=code(step.id)),
    ]
    return [f"- {line}" for line in lines]


def _what(change: Change) -> str:
    line, where = code(phrases.change_line(change)), phrases.place_of(change)
    return say("{change} ({place})", change=line, place=text(where)) if where else line


def _offered(plan: Plan) -> str:
    """Steps that are there to be chosen, shorter."""
    rows = [
        f"| {code(step.id)} | {text(step.title)} | "
        f"{'<br>'.join(code(phrases.change_line(change)) for change in step.changes) or '–'} | "
        f"{phrases.results_word(step)} | "
        f"{text(phrases.saves_word(step)) or '–'} | {BASIS_TITLES[step.basis]} |"
        for step in plan.steps
        if not step.selected
    ]
    header = [say("| id | change | setting | results | saves | basis |"), "|---|---|---|---|---|---|"]
    return _section(say("What else could be done"), [*header, *rows]) if rows else ""


# --- why -----------------------------------------------------------------------------------------------------------


def _proof(crash: Crash) -> str:
    lines = [_quote(entry) for entry in crash.evidence[:12]]
    lines += ["- " + say("The phase: {because}", because=text(crash.phase_because))] if crash.phase_because else []
    lines += ["- " + say("Held: {held}", held=text(held)) for held in phrases.holders(crash)]
    return _section(say("What the log proves"), lines)


def _quote(entry: Evidence) -> str:
    return "- " + say(
        "{place} ({signature}, {role}): {line}",
        place=code(phrases.quote_place(entry)),
        signature=code(entry.signature),
        role=phrases.role(entry),
        line=code(entry.text, 300),
    )


def _cause(diagnosis: Diagnosis) -> str:
    if not diagnosis.cause:
        return ""
    title = say("**{title}** ({basis})", title=text(diagnosis.title), basis=BASIS_TITLES[diagnosis.basis])
    lines = [title, "", text(diagnosis.explains), ""]
    lines += [f"- {_question(step)}" for step in diagnosis.path]
    for one in diagnosis.advisories:
        head = say("**{library}**: {title}.", library=text(f"{one.library} {one.version}"), title=text(one.title))
        lines.append(f"- {sentences((head, say('{words} ({source})', words=text(one.says), source=text(one.source))))}")
    return "\n".join([f"## {say('Likely cause')}", "", *lines, ""])


def _question(step: QuestionStep) -> str:
    answer = say(
        "{asks} **{answer}** ({because})",
        asks=text(step.asks),
        answer=text(phrases.answer_title(step)),
        because=text(phrases.because(step)),
    )
    if step.answer != UNKNOWN or not step.if_unknown:
        return answer
    return sentences((answer, say("To find out: {how}", how=text(step.if_unknown))))


def _memory(ledger: Ledger, plan: Plan) -> str:
    lines = [
        *_table("gpu", ledger, plan.after),
        *_table("host", ledger, plan.after),
    ]
    lines += ["- " + say("Assumed: {assumed}", assumed=text(assumed)) for assumed in ledger.assumed]
    lines += ["- " + say("Not known: {missing}", missing=text(missing)) for missing in ledger.missing]
    return "\n".join([f"## {say('Memory before and after')}", "", *lines, ""]) if lines else ""


def _table(place: Place, before: Ledger, after: Ledger | None) -> list[str]:
    phases = before.sums(place)
    if not phases:
        return []
    room = phrases.rooms(before, after, place)
    titles = Sayings[Place](
        {"gpu": "GPU memory of one card, GiB of {size}:", "host": "Host RAM of one node, GiB of {size}:"}
    )
    title = titles[place].format(size=room)
    lines = [title, "", say("| phase | now | low–high | after |"), "|---|---:|---:|---:|"]
    for each in phases:
        later = after.phase(place, each.phase) if after else None
        lines.append(
            f"| {PHASE_TITLES[each.phase]} | {show_gib(each.expected)} | {show_gib(each.low)}–{show_gib(each.high)} | "
            f"{show_gib(later.expected) if later else '–'} |"
        )
    return [*lines, ""]


def _case(case: CaseMatch) -> str:
    told = {"title": text(case.title), "id": code(case.id), "agree": case.agree, "of": case.of}
    if not case.differs:
        says = say("{title} ({id}): {agree} of {of} facts agree.", **told)
    else:
        differs = text(listed(case.differs))
        says = say("{title} ({id}): {agree} of {of} facts agree; differs in {differs}.", **told, differs=differs)
    return sentences((says, text(case.source)))


def _foot(state: State) -> str:
    names = [path.name for path in (state.asked.script, *state.asked.logs) if path is not None]
    return say(
        "Written by rl-oom-advisor {version}, knowledge {digest}, from {files}.",
        version=__version__,
        digest=state.knowledge.digest,
        files=listed(code(name) for name in names) or say("a description"),
    )
