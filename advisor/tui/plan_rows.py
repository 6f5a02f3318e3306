"""Words the plan: its steps, what each saves, why it is off, the bars of a phase, and a number as it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from msgspec.structs import replace

from advisor.hostile import cells
from advisor.language import Sayings, clauses, listed, mark, say, say_count
from advisor.line_breaks import cut
from advisor.memory.cells import Place
from advisor.plan.own_number import SMALL
from advisor.plan.patch import WRITABLE, is_written
from advisor.plan.plan import Change, Plan, PlanStep
from advisor.report.step_words import largest_saving
from advisor.tui.facts import doubts_of_sums, short_name
from advisor.tui.memory_bars import (
    PLACE_WORDS,
    doubt_rows,
    fit_words,
    fullest_after,
    legend,
    phase_rows,
    phases_of,
    tightest_words,
    unexplained,
)
from advisor.tui.page import POINTER
from advisor.tui.ui_text import (
    BLANK,
    Row,
    Tone,
    Toned,
    TonedLine,
    crop,
    cut_key,
    heading,
    line,
    pad,
    pad_left,
    paragraph,
    rows,
    span,
    width_of,
    wrap,
)
from advisor.units import GIB, show_bytes
from advisor.words import BASIS_TITLES, PHASE_TITLES, Phase, Results, sentence

if TYPE_CHECKING:
    from advisor.plan.own_number import Fitting
    from advisor.plan.plan import PlanStep
    from advisor.state import State

_RESULTS, _SAVES, _BASIS = 8, 13, 10
_DOCUMENTED = mark("documented: {value}; d shows the case")
BOX = "[x]"
NARROW = 28
"""Columns a name needs; with fewer, the numbers go on a line of their own."""
FLAT, TALL, LINES_A_PHASE = 20, 30, 6
"""Terminal lines below which only the memory that ran out is drawn; from which more phases are, and what each takes."""
BARS = 7
"""Lines that the bars take of a terminal below TALL."""
Group = Literal["chosen", "other", "changed", "hands"]
GROUPS: tuple[Group, ...] = get_args(Group)
GROUP_TITLES: Sayings[Group] = Sayings(
    {
        "chosen": "Proposed",
        "other": "Instead, or besides",
        "changed": "Changes training results",
        "hands": "By hand: no file of this launch carries it",
    }
)
RESULT_WORDS: Sayings[Results] = Sayings({"unchanged": "same", "changed": "CHANGES"})


def saving_words(step: PlanStep) -> str:
    """Like "−61 GiB host", the number of the reports; a plus where the step costs memory; "" where it is not known."""
    found = largest_saving(step)
    if found is None or not found[1]:
        return ""
    _, saved, place = found
    size = abs(saved) / GIB
    whole = size >= 10 or (step.basis == "estimated" and size >= 1)
    shown = f"{size:.{0 if whole else 1}f} GiB" if size >= 0.1 else show_bytes(abs(saved))
    return f"{'−' if saved > 0 else '+'}{shown} {PLACE_WORDS[place]}"


def change_words(change: Change) -> str:
    """Like "true → false"; "unset" and "removed" where a side is missing."""
    old = change.old_words or say("unset")
    new = change.new if change.new is not None else say("removed")
    return f"{old} → {new}"


def place_words(change: Change) -> str:
    """Like "run.sh:9 (added as an override)"."""
    if not change.file:
        return change.how
    at = f"{short_name(change.file)}:{change.line}" if change.line is not None else short_name(change.file)
    return say("{place} ({how})", place=at, how=change.how) if change.how else at


def takes_number(step: PlanStep) -> bool:
    """Whether its first change sets a number that can be chosen."""
    return bool(step.number) and step.kind in WRITABLE and not step.id.startswith("as-in-")


def groups_of(plan: Plan) -> dict[str, Group]:
    """Under which title each step stands; where nothing is proposed, all under one, in the order of the reports."""
    alike: Group | None = None
    if not plan.selected():
        alike = "other" if any(map(is_written, plan.steps)) else "hands"
    return {one.id: alike or _group_of(one) for one in plan.steps}


def _group_of(step: PlanStep) -> Group:
    if step.selected:
        return "chosen"
    if not is_written(step):
        return "hands"
    return "changed" if step.results == "changed" else "other"


def column_titles(title: str, width: int) -> Row:
    """The head of the table of steps, with the title of the first of them."""
    room = _name_width(width - POINTER)
    if room < NARROW:
        return Row(line(span(say("{title}: results, memory, basis", title=title), "title")))
    columns = f"{pad(title, room + 6)} {pad(say('results'), _RESULTS)} {pad_left(say('memory'), _SAVES)}"
    return Row(line(span(f"{columns}  {say('basis')}", "title")))


def _name_width(width: int) -> int:
    return width - len("[x] ") - _RESULTS - _SAVES - _BASIS - 4


def plan_rows(
    state: State,
    width: int,
    marked: str | None = None,
    *,
    brief: bool = False,
    field: NumberField | None = None,
    because: str = "",
    groups: Mapping[str, Group] | None = None,
) -> list[Row]:
    """The steps, two lines or more each; the cursor stands on steps. `marked`: the one that says why, too.

    `brief`: it says only why it is off, which `because` has. `field`: the number that is being written.
    `groups`: step → its title, where that is not to follow what is switched.
    """
    plan, doubts = state.plan, doubt_rows(state.run, width, brief=True)
    if not plan.steps:
        return [
            *doubts,
            *paragraph(say("There is nothing to propose for this cause."), width, tone="strong"),
            *_why_nothing(state, width),
        ]
    titled = {**groups_of(plan), **(groups or {})}
    out, title, group = doubts, "", ""
    for step in sorted(plan.steps, key=lambda one: GROUPS.index(titled[one.id])):
        if title != titled[step.id]:
            told = GROUP_TITLES[titled[step.id]]
            told = told if title or titled[step.id] != "other" else say("What may help")  # nothing is proposed
            out.append(heading(told) if title else column_titles(told, width))
            title = titled[step.id]
        if step.group and step.group == group:
            out.append(Row(line(span("    " + say("or instead of it:"), "dim"))))
        group = step.group
        here = field if field is not None and field.step.id == step.id else None
        told = because if marked == step.id else ""
        if titled[step.id] != "hands" and not is_written(step):
            step = replace(step, title=say("by hand: {title}", title=step.title))
        out += _step(step, plan, width - POINTER, marked == step.id and not brief, here, told)
    if plan.shortfall:
        out += [BLANK, *paragraph(plan.shortfall, width, tone="warn")]
    return out


def _why_nothing(state: State, width: int) -> list[Row]:
    out: list[Row] = []
    for one in state.plan.not_proposed[:4]:
        out += paragraph(say("{title}: {because}", title=one.title, because=one.because), width, 2)
    if state.diagnosis.record_next_time:
        told = say("Next time record: {what}", what=state.diagnosis.record_next_time)
        out += [BLANK, *paragraph(told, width)]
    return out


def _step(
    step: PlanStep,
    plan: Plan,
    width: int,
    in_full: bool,
    field: NumberField | None,
    because: str,
) -> list[Row]:
    first = step.changes[0] if step.changes else None
    own_key = first is not None and step.kind in ("setting", "environment")
    name = first.key if first and own_key else step.title
    shorten = cut_key if own_key else cut
    yours = span("  " + say("your number"), "mark") if step.own else Toned("")
    beneath = line(change_words(first), yours) if first is not None and own_key and field is None else ()
    shared = (bool(beneath) or not own_key) and NARROW <= _name_width(width) < cells(name)
    under = beneath if shared else None
    if shared and not own_key:
        name, *rest = wrap(name, width - 4)
        under = line(" ".join(rest))
    head = _head(step, name, shorten, saving_words(step), width, under)
    out = [Row(one, step.id) for one in head]
    for number, change in enumerate(step.changes):
        if number == 0 and field is not None:
            named = "" if own_key else f"{change.key}  "
            out.append(Row(line("      ", named, *field.words(change.old_words or say("unset"))), step.id))
            out += [Row(row.line, step.id) for row in field.rows(width, 6)]
            continue
        words = beneath or line(f"{change.key}  {change_words(change)}", yours)
        if number:
            words = line(f"{change.key}  {change_words(change)}")
        place = span(place_words(change), "dim")
        if number or not shared or not own_key:
            out.append(Row(line("      ", *words, "   ", place), step.id))
        elif in_full and place.text:
            out.append(Row(line("      ", place), step.id))
    clash = _clash(step, plan)
    if because and not clash:
        out += paragraph(because, width, 6, "mark", step.id)
    if clash:
        out.append(Row(line("      ", span(cut(clash, width - 6), "warn")), step.id))
    told: list[tuple[str, Tone]] = [
        (say("for example {example}", example=step.example) if step.example else "", "plain"),
        (step.why, "plain"),
        (step.caveats[0] if step.caveats else "", "dim"),
        (sentence(step.worked_here), "good"),
        (say(_DOCUMENTED, value=step.documented) if step.documented else "", "dim"),
    ]
    told = [(step.title, "strong"), *told] if own_key else told
    for text, tone in told if in_full else ():
        out += paragraph(text, width, 6, tone, step.id) if text else []
    return out


def chosen_rows(step: PlanStep, width: int) -> list[Row]:
    """What a step changes, a line each: key, old and new value; its title where it changes no key."""
    if not step.changes:
        return rows(line("  ", cut(step.title, width - 2)))
    out = []
    for change in step.changes:
        words = change_words(change)
        out += rows(line("  ", cut_key(change.key, max(8, width - cells(words) - 4)), "  ", span(words, "strong")))
    return out


def _head(
    step: PlanStep, name: str, shorten: Callable[[str, int], str], saves: str, width: int, beneath: TonedLine | None
) -> list[TonedLine]:
    """Switch, name, and the three columns; under the name, and behind what stands `beneath` it, without room there."""
    box = Toned(BOX if step.selected else "[ ]", "mark" if step.selected else "plain")
    results = Toned(RESULT_WORDS[step.results], "warn" if step.results == "changed" else "plain")
    basis = span(f"  {BASIS_TITLES[step.basis]}", "dim")
    room = _name_width(width)
    if room < NARROW:
        numbers = line("      ", results, f"  {saves}" if saves else "", basis)
        return [line(box, f" {shorten(name, width - 4)}"), numbers]
    gap = " " * (_RESULTS - cells(results.text) + 1)
    numbers = line(results, f"{gap}{pad_left(saves, _SAVES)}", basis)
    if beneath is not None:
        under = crop(line("      ", *beneath), len(BOX) + 1 + room)
        under = (*under, Toned(" " * (len(BOX) + 2 + room - width_of(under))))
        return [line(box, f" {shorten(name, width - 4)}"), (*under, *numbers)]
    return [line(box, f" {pad(shorten(name, room), room)} ", *numbers)]


def _clash(step: PlanStep, plan: Plan) -> str:
    """Why this step cannot be on together with what is on; "" where nothing stands against it."""
    against = [other.title for other in plan.selected() if other.id in step.conflicts or step.id in other.conflicts]
    return say("not together with: {steps}", steps=clauses(against)) if against and not step.selected else ""


def off_because(step: PlanStep, plan: Plan, by_user: bool, if_on: Callable[[], Plan]) -> str:
    """Why a step is off; "" where it is on. `by_user`: who switched it off. `if_on`: the plan with it."""
    if step.selected:
        return ""
    alike = [other.title for other in plan.selected() if step.group and other.group == step.group]
    if alike:
        return say("off: {other} is on in its place", other=listed(alike))
    if by_user:
        return say("off: you switched it off")
    if step.no_place:
        return say("off: no file of this launch can carry it; switched on, it stands in the report")
    if step.kind not in WRITABLE:
        return say("off: to be done by hand; the bars do not count on it")
    if not step.saves and step.kind != "job":
        return say("off: how much it helps cannot be computed here")
    if plan.fits is None:
        return say("off: whether it would be enough cannot be computed here")
    if plan.fits:
        enough = say("off: what is on suffices") if plan.selected() else say("off: by these sums it fits as it is")
        return (
            say("{enough}; this would change training results", enough=enough) if step.results == "changed" else enough
        )
    if step.saves.get(step.decides, 0) <= 0 and step.kind != "job":
        return say("off: it saves nothing in {phase}", phase=PHASE_TITLES[step.decides])
    then = if_on().fits
    if then is None:
        return say("off: whether all would fit with it cannot be computed here")
    return say("off; with it the run is expected to fit") if then else say("off: with it the run still does not fit")


def bar_rows(state: State, phase: Phase | None, width: int, height: int, decides: Place | None = None) -> list[Row]:
    """Bars of one phase, more of them where the terminal is `height` enough, the verdict on the fit, the legend.

    Where there is room for one memory alone: the one that `decides`, else the one that ran out.
    """
    plan = state.plan
    if state.crash.verdict == "not_oom":
        return rows(line(say("All of this is done by hand.")))
    if phase is None or not phase_rows(plan, phase, width):
        return [*unexplained(plan, width), Row(line(fit_words(plan)))]
    if height < FLAT:
        died_of: Place = decides or ("host" if state.diagnosis.memory == "host" else "gpu")
        out = phase_rows(plan, phase, width, (died_of,)) or phase_rows(plan, phase, width)
    else:
        out = phase_rows(plan, phase, width)
    head, fit = out[0].line, line(fit_words(plan))
    whole = width_of(head) + width_of(fit) + 3 <= width
    out[:1] = [Row((*head, Toned("   "), *fit))] if whole else [Row(fit), Row(head)]
    others = _more_phases(plan, phase, (height - TALL) // LINES_A_PHASE)
    found = fullest_after(plan, phase)
    for other in others:
        title, *bars = phase_rows(plan, other, width)
        mark = span("   " + say("the fullest after") if found and found[0] == other else "", "dim")
        out += [BLANK, Row((*title.line, mark)), *bars]
    for doubt in doubts_of_sums(state)[:1]:
        out += rows(line(span("m", "mark"), "  ", span(cut(doubt, width - 3), "warn")))
    out += rows(tightest) if not others and (tightest := tightest_words(plan, phase)) else []
    letters = legend(plan, [phase, *others], width) if height >= FLAT else []
    return [*out, *letters[: BARS - len(out) if height < TALL else None]]  # the help has all letters


def _more_phases(plan: Plan, shown: Phase, most: int) -> list[Phase]:
    """The phases to show below the chosen one: the fullest after, then the others in their order."""
    fullest = fullest_after(plan, shown)
    order = dict.fromkeys([*([fullest[0]] if fullest else []), *phases_of(plan)])
    return [phase for phase in order if phase != shown][: max(0, most)]


def after_answer(before: State, after: State) -> str:
    """Like "cause changed from … to …; 2 steps are new, 1 is gone"; says so where nothing follows from the answer."""
    parts = []
    if before.diagnosis.cause != after.diagnosis.cause:
        old_title, new_title = before.diagnosis.title, after.diagnosis.title
        parts.append(say("cause changed from “{before}” to “{after}”", before=old_title, after=new_title))
    old, new = ({step.id for step in state.plan.steps} for state in (before, after))
    if new - old:
        parts.append(say_count("{number} step new in the plan", "{number} steps new in the plan", len(new - old)))
    if old - new:
        parts.append(say_count("{number} step gone from it", "{number} steps gone from it", len(old - new)))
    if not parts and [s.id for s in before.plan.steps] != [s.id for s in after.plan.steps]:
        parts.append(say("the order of the plan changed"))
    was, now = before.ledger.peak("gpu"), after.ledger.peak("gpu")
    if was is not None and now is not None and was.expected != now.expected:
        sizes = {"before": show_bytes(was.expected), "after": show_bytes(now.expected)}
        parts.append(say("at its fullest a GPU needs {after}, not {before}", **sizes))
    return clauses(parts) or say("nothing else changed: same cause, same plan")


def after_toggle(before: State, after: State, asked: str) -> str:
    """Like "also switched: …" where a conflict switched others; "" where only the asked one moved."""
    was = {step.id: step.selected for step in before.plan.steps}
    moved = [step for step in after.plan.steps if step.id != asked and was.get(step.id) != step.selected]
    others = [say("{step} on" if step.selected else "{step} off", step=step.title) for step in moved]
    parts = [say("also switched: {steps}", steps=clauses(others))] if others else []
    if before.plan.fits != after.plan.fits:
        parts.append(fit_words(after.plan).text)
    return clauses(parts)


MOST = 12
"""Characters of a number."""
ALLOWED = frozenset("0123456789.")


@dataclass
class NumberField:
    """A number as it is typed, over the plan as it stands."""

    step: PlanStep
    text: str
    draft: State | None = None
    """The session with that number; None while it is computed, or where it is refused."""
    refused: str = ""
    fitting: Fitting | None = None
    """None while it is computed."""
    fresh: bool = True
    """Nothing was typed yet: the first digit replaces what stands there."""
    asked: int = field(default=0)
    """How often the session was asked: only the answer to the last question counts."""

    @property
    def untouched(self) -> bool:
        """It stands as the plan has it."""
        return self.text == self.step.number

    def typed(self, characters: str) -> bool:
        """Add what belongs to a number; whether anything did."""
        kept = "".join(one for one in characters if one in ALLOWED)
        if kept:
            self.text = (kept if self.fresh else self.text + kept)[:MOST]
            self.fresh = False
        return bool(kept)

    def rubbed(self) -> None:
        """Without its last character."""
        self.text, self.fresh = self.text[:-1], False

    def moved(self, by: int) -> bool:
        """To the next number on this side that the framework allows; whether there is one."""
        values = [(one.value, one.text) for one in self.fitting.tried] if self.fitting is not None else []
        try:
            here = float(self.text)
        except ValueError:
            here = values[0][0] if values else 0.0
        further = [text for value, text in values if (value > here if by > 0 else value < here)]
        if further:
            self.text, self.fresh = further[0 if by > 0 else -1], True
        return bool(further)

    def words(self, old: str) -> TonedLine:
        return line(span(old), " → ", Toned(f"{self.text}▌" if not self.fresh else f"[{self.text}]", "mark"))

    def rows(self, width: int, indent: int) -> list[Row]:
        """Why the number cannot be, and the numbers that fit."""
        out = paragraph(self.refused, width, indent, "bad") if self.refused else []
        return [*out, *paragraph(self.bounds(), width, indent, "mark")]

    def bounds(self) -> str:
        """Like "fits from 0.1 to 0.5; 0.55 does not"."""
        if self.fitting is None:
            return say("… which numbers fit")
        tried = self.fitting.tried
        if not tried:
            return say("the framework allows no other number here")
        unsaid, said = [one for one in tried if one.fits is None], [one for one in tried if one.fits is not None]
        if unsaid and not any(one.fits for one in tried):
            if said and unsaid[-1].value < said[0].value:
                doubt = mark("beside what is on it does not fit from {least} on; below that it cannot be said")
                return say(doubt, least=said[0].text)
            return say("which numbers fit cannot be computed here")
        value = float(self.step.number or 0)
        below, fitting, above = self.fitting.around(value)
        if not fitting:
            return say(
                "beside what is on no number from {least} to {most} fits", least=tried[0].text, most=tried[-1].text
            )
        told = {"least": fitting[0].text, "most": fitting[-1].text}
        if len(fitting) - 1 < fitting[-1].value - fitting[0].value < SMALL:  # the framework takes none between
            return say("beside what is on these fit: {numbers}", numbers=listed(one.text for one in fitting))
        if below is None and above is None:
            return say("beside what is on every number from {least} to {most} fits", **told)
        if above is None:
            return say("fits from {least} on; {below} does not", **told, below=below.text if below else "")
        if below is None:
            return say("fits up to {most}; {above} does not", **told, above=above.text)
        both = {"below": below.text, "above": above.text}
        return say("fits from {least} to {most}; {below} and {above} do not", **told, **both)
