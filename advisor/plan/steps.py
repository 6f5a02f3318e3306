"""Writes proposals as steps: their changes, why, what they save and cost, and from where that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.diagnosis.fact import all_hold
from advisor.hostile import clean_line
from advisor.knowledge.schema import Framework, Remedy
from advisor.language import say, sentences
from advisor.memory.inputs import SHARE
from advisor.plan.common_names import stated_by_name
from advisor.plan.patch import no_place_because, not_written
from advisor.plan.plan import Change, PlanStep, StepKind, TypedExample, believable
from advisor.plan.propose import Proposal
from advisor.plan.situation import TOTAL, Situation
from advisor.regex import regex
from advisor.rules.tree import as_number
from advisor.run.dialect import ASSIGNED, ASSUMED_BY, EraToldBy, beside_file
from advisor.run.natives import EnvironmentPrefix, Native, last_part
from advisor.run.values import parse_value
from advisor.script.document import Setting
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase, filled, when

USUAL_LENGTH = 2048
"""Tokens that a row is cut to at first, where nobody knows how long it is (judgement)."""


def step_of(proposal: Proposal, situation: Situation, selected: bool) -> PlanStep:
    """The proposal as a step; the rank is given later."""
    remedy = proposal.remedy
    changes = tuple(change_of(proposal.present[key], new, situation) for key, new in proposal.overrides.items())
    environment = all(key.startswith(EnvironmentPrefix) for key in proposal.overrides)
    kind: StepKind = "environment" if environment else remedy.kind if remedy.kind != "environment" else "setting"
    elsewhere = _in_another_file(proposal.overrides, situation)
    most = (situation.now.ledger.gpu_capacity or 0) if remedy.memory != "host" else 0
    unnamed = elsewhere and not any(change.left_to_user for change in changes)
    alone = not any(fact.knob in remedy.also for fact in proposal.facts)
    return PlanStep(
        id=remedy.id,
        title=remedy.title_alone if remedy.title_alone and alone and changes[0].old else remedy.title,
        kind=kind,
        tier=remedy.tier,
        changes=changes,
        results=proposal.results,
        basis=proposal.basis,
        saves={phase: size for phase, size in proposal.saves.items() if size},
        most=most,
        place="host" if remedy.memory == "host" else "gpu",
        why=_why(proposal, situation, changes[0], most),
        costs=remedy.costs,
        caveats=(
            *_dated(proposal.overrides, situation),
            *_no_saving_seen(proposal, situation),
            *_assumed(changes, situation),
            *elsewhere,
            *proposal.caveats,
        ),
        sources=tuple(dict.fromkeys([remedy.source, *(case.source for case in proposal.cases)])),
        documented=proposal.documented,
        worked_here=proposal.worked_here,
        selected=selected,
        group=remedy.knob or remedy.id,
        host_saves={phase: size for phase, size in proposal.other_saves.items() if size},
        spills=proposal.spills,
        then=_then(proposal),
        typed=example_of(remedy, situation) if unnamed and not _file_of(situation) else None,
        no_place=bool(elsewhere),
        decides=situation.fullest,
    )


def _then(proposal: Proposal) -> str:
    """The least value of a pass, where nothing tells how small it has to be and there is more than one step to it."""
    batch = proposal.remedy.relieves == "pass" and not proposal.remedy.lever
    if proposal.fits is not None or not batch or not proposal.options:
        return ""
    key, new = next(iter(proposal.overrides.items()))
    least = proposal.options[-1].overrides.get(key)
    return least if least is not None and least != new and least.isdecimal() else ""


def mending_step(situation: Situation) -> PlanStep | None:
    """The step that gives the program what its command loses in bash, or may lose; else None."""
    run = situation.now.run
    lost = run.lost or (() if run.quoted else run.maybe_lost)
    if not lost:
        return None
    out = say("Take the comment out of the command first")
    title = out if run.lost else say("Look first whether one line ends the command too early")
    costs = say("the settings below it come into force: look at each")
    return PlanStep(
        id="mend-command",
        title=title,
        kind="manual",
        results="changed",
        basis="computed",
        place=situation.place,
        why=sentences(lost),
        costs=costs,
        group="mend-command",
        decides=situation.fullest,
    )


_ASSIGNED = regex(
    r"(?:(?P<key>[A-Za-z][\w.-]*)(?:=|: )|--(?P<option>[A-Za-z][\w.-]*)[= ])(?P<value>\"[^\"]*\"|[\w./-]+)(?:, |\s|$)"
)


def example_of(remedy: Remedy, situation: Situation) -> TypedExample | None:
    """How it is typed in what most people train with; None where the knowledge has no example for such a run."""
    found = next((one for one in remedy.examples if all_hold(one.when, situation.facts) is not None), None)
    if found is None:
        return None
    launch = situation.predictor.inputs.launch
    files = [file.rpartition("/")[2] for file in launch.files] if launch is not None else []
    written = [launch.program, *files] if launch is not None else []
    program = clean_line(next((name for name in written if name.endswith(".py")), "train.py"))
    code = found.code.replace("{program}", program).replace("{length}", str(_shorter(situation)))
    changes, end = [], 0
    while assigned := _ASSIGNED.match(code, end):
        key, end = assigned["key"] or assigned["option"], assigned.end()
        old = found.defaults.get(key)
        new = assigned["value"].strip('"')
        changes.append(Change(key, old, new, how=not_written(), old_source="assumed" if old else None))
    return TypedExample(code, found.place, tuple(changes))


def _shorter(situation: Situation) -> int:
    """Tokens of half a row, where the longest one is known; else what most try first."""
    longest = situation.now.run.number(TOTAL)
    longest = None if situation.rows_unknown else longest
    cutting = next((one for one in situation.remedies if one.knob == TOTAL and one.value is not None), None)
    named = stated_by_name(cutting, situation) if longest is None and cutting is not None else None
    longest = named.value if named is not None and isinstance(named.value, int) else longest
    return USUAL_LENGTH if longest is None else max(1, int(longest) // 2)


def change_of(present: Native, new: str | None, situation: Situation) -> Change:
    """A change with its key as the user's file writes it: variables bare, options with their dashes."""
    key, old, source = present.key, present.text, present.source
    if key.startswith(EnvironmentPrefix):
        return Change(key.removeprefix(EnvironmentPrefix), old, new, old_source=source, variable=True)
    framework = situation.predictor.inputs.recognised.framework
    options = framework is not None and framework.takes_options
    bare = options and present.fact is not None and present.fact.type == "flag"
    inputs = situation.predictor.inputs
    in_file, form = beside_file(inputs.recognised, inputs.launch, present.key)
    given_there = present.setting is not None and present.setting.origin == "command"
    in_file = in_file and not given_there
    if present.setting is not None and _is_launchers(present.setting):
        return Change(f"--{last_part(key)}", old, new, how=not_written(), left_to_user=True, old_source=source)
    if present.setting is not None:
        key = present.setting.key if " " not in present.setting.key else key  # a person's words for it are no key
        return Change(key, old, new, bare=bare, form=form, in_file=in_file, old_source=source)
    if present.fact is not None and (present.fact.only_in or present.fact.yours):
        if _file_was_read(key, situation):
            return Change(key, old, new, old_source=source)
        within = _file_of(situation) if present.fact.only_in else ""
        return Change(present.fact.yours or key, old, new, how=not_written(), old_source=source, within=within)
    plain = form in ASSIGNED or in_file or _no_command(situation)
    written = key if plain or not options else f"--{key}"
    since, bare = _told_since(present, framework, inputs.recognised.era_told_by), bare and not in_file
    return Change(written, old, new, bare=bare, form=form, in_file=in_file, old_source=source, since=since)


def _is_launchers(setting: Setting) -> bool:
    """Whether an option of `accelerate launch` says it, and no file."""
    return setting.origin == "command" and setting.key.startswith("accelerate:")


def _file_of(situation: Situation) -> str:
    """The file of the launcher or of DeepSpeed that the launch names and that was not found; "" where it names none."""
    launch, unread = situation.predictor.inputs.launch, situation.now.run.unread
    missing = launch.not_found if launch is not None else ()
    return unread.file if unread is not None else next((one.file for one in missing if one.holds), "")


def _file_was_read(key: str, situation: Situation) -> bool:
    """Whether the file whose keys have the prefix of this one ("deepspeed:") is here."""
    front, colon, _ = key.partition(":")
    return bool(colon) and any(one.key.startswith(front + colon) for one in situation.now.run.settings)


def _no_command(situation: Situation) -> bool:
    """A config file or a Python file was given, no command, or the command reads nothing beside a file that was not
    found: what is added goes into it, under a plain name."""
    inputs = situation.predictor.inputs
    launch = inputs.launch
    if launch is None:  # as most people keep them
        framework = inputs.recognised.framework
        return framework is not None and framework.kept_in_yaml
    if any(s.key.startswith("-") for s in launch.settings):
        return False
    names_file = any(name.endswith((".yaml", ".yml", ".json", ".toml")) for name in launch.missing)
    return not launch.argv or (names_file and not launch.settings)


def _in_another_file(keys: Iterable[str], situation: Situation) -> tuple[str, ...]:
    """Why a key has no place here: another program's config file holds it, and this launch names none that was read."""
    natives = situation.now.built.natives.values
    told = [natives[key] for key in keys if key in natives]
    if any(one.setting is not None and _is_launchers(one.setting) for one in told):
        return (no_place_because(say("it is an option of the launcher, before the program")),)
    known = [one for one in told if not _file_was_read(one.key, situation)]
    files = dict.fromkeys(n.fact.only_in for n in known if n.fact is not None and n.fact.only_in and n.setting is None)
    if any(n.fact is not None and n.fact.yours and n.setting is None for n in known):
        return (no_place_because(say("it is the script's own setting, whose name is not known here")),)
    return tuple(
        no_place_because(say("it stands in {file}, and this launch names none that was read", file=file))
        for file in files
    )


def _dated(keys: Iterable[str], situation: Situation) -> tuple[str, ...]:
    """What is added and does not exist in every version, where nobody knows which one runs."""
    recognised, natives = situation.predictor.inputs.recognised, situation.now.built.natives.values
    framework = recognised.framework
    if framework is None or recognised.era_told_by not in ASSUMED_BY:
        return ()
    known = [natives[key] for key in keys if key in natives]
    added = {n.key: told for n in known if (told := _told_since(n, framework, recognised.era_told_by))}
    return tuple(
        say(
            "{key} exists {since}, and which version runs is not known: check with `pip show {package}`",
            key=key,
            since=told,
            package=framework.package,
        )
        for key, told in added.items()
    )


def _told_since(known: Native, framework: Framework | None, told_by: EraToldBy) -> str:
    """In which versions a key is there that the launch does not have, where that is not in all, and nobody knows the
    version; "" elsewhere."""
    fact = known.fact if known.setting is None else None
    if fact is not None and fact.since and told_by in ASSUMED_BY:
        return say("from {era} on", era=fact.since)
    eras = fact.eras if fact is not None else ()
    if framework is None or told_by not in ASSUMED_BY or not {era.id for era in framework.eras} - set(eras or ("*",)):
        return ""
    return since(eras, framework.eras[0].id) if eras else ""


def since(eras: Sequence[str], newest: str) -> str:
    """In which versions, in words: "from v0.4 on"; `eras` from the oldest on."""
    if newest in eras:
        return say("from {era} on", era=eras[0] if eras[0] != newest or len(eras) == 1 else eras[-1])
    return say("in {era}", era=eras[0]) if len(eras) == 1 else say("in {first} to {last}", first=eras[0], last=eras[-1])


def _assumed(changes: Iterable[Change], situation: Situation) -> tuple[str, ...]:
    """What a setting that nobody saw was taken to be."""
    unseen = [one for one in changes if one.old_source == "assumed" and one.old is not None]
    return tuple(
        say(
            "no launch shows {key}: {value} is {framework}'s default; where yours differs, go on from there",
            key=one.key,
            value=one.old,
            framework=situation.now.built.run.title,
        )
        for one in unseen
    )


def _no_saving_seen(proposal: Proposal, situation: Situation) -> tuple[str, ...]:
    """A documented step that the ledger does not support where this run died says so."""
    phase = situation.fullest
    if not proposal.documented or proposal.fits is None or proposal.saves.get(phase, 0) > 0:
        return ()
    return (
        say(
            "the ledger sees no saving in {phase}; it is here because {case} reports it",
            phase=PHASE_TITLES[phase],
            case=proposal.documented,
        ),
    )


def _why(proposal: Proposal, situation: Situation, change: Change, most: int) -> str:
    saves = believable(proposal.saves, most)
    freed = saves.get(situation.phase) or max(saves.values(), default=0)
    unknown = say("an unknown amount")
    if proposal.saves.get(situation.fullest, 0) > most > 0:  # more than ever could be allocated
        freed, unknown = 0, say("more than the {size} of a card", size=show_bytes(most))
    old, new = (as_number(parse_value(text or "", "float")) for text in (change.old, change.new))
    if proposal.remedy.knob == SHARE and most and old is not None and new is not None and new < old <= 1:
        unknown = show_bytes(round((old - new) * most))  # of a card, whatever is counted
    cost = -min(proposal.other_saves.values(), default=0)
    words = {
        "old": change.old or say("the default"),
        "new": change.new if change.new is not None else say("removed"),
        "key": change.key,
        "freed": show_bytes(freed) if freed > 0 else unknown,
        "cost": show_bytes(cost) if cost > 0 else say("nothing" if proposal.fits is not None else "an unknown amount"),
        "where": _where(saves, situation),
        "checked": say(
            "every phase was checked with it" if proposal.fits is not None else "no phase can be computed here"
        ),
    }
    return filled(" ".join(proposal.remedy.says.split()), words)


def _where(saves: Mapping[Phase, int], situation: Situation) -> str:
    """Of what is freed: the phase that failed, or the one that gains most (a phase the failed one hid)."""
    if saves.get(situation.phase) or not any(size > 0 for size in saves.values()):
        return say("where it failed")
    return when(max(saves, key=lambda phase: saves[phase]))
