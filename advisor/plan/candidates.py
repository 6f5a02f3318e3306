"""Lists the values a setting may be given, best first: by the `value` of a remedy, and as documented cases ran with
them; and refuses those with which the rollout engine could not start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.cases import GRADES
from advisor.diagnosis.fact import Facts, value_of
from advisor.hostile import clean_line
from advisor.knowledge.schema import Case, NewValue, Partners, Remedy
from advisor.language import say
from advisor.memory.constants import BF16
from advisor.memory.fit import cannot_start
from advisor.memory.inputs import SHARE
from advisor.memory.predict import Prediction
from advisor.memory.squeeze import finding_clause
from advisor.plan.situation import TOTAL, Situation
from advisor.rules.expression import Expression
from advisor.rules.tree import Constant, RuleValue, Sum, as_number
from advisor.rules.tree import walk as walk_tree
from advisor.run.bound import default_here
from advisor.run.build import BuiltRun
from advisor.run.constraints import scope_of
from advisor.run.natives import ChosenScope, EnvironmentPrefix, Native, Natives, RunScope
from advisor.run.run import Knob, KnobValue
from advisor.run.values import parse_value, spell
from advisor.units import GIB, show_bytes

MOST = 24
"""Candidates looked at for one setting."""
LENGTHS = ("data.prompt_tokens", "data.response_tokens", TOTAL)
ROUNDING = 4
"""Digits of a share."""


def candidates(rule: NewValue, native: Native, built: BuiltRun, new: KnobValue | None = None) -> list[KnobValue]:
    """At most MOST values for `native`, the mildest first; [] where there is none to offer.

    `new`: the value that the remedy gives its own setting, for those that move along with it.
    """
    return list(islice(_offered(rule, native, built, new), MOST))


def _offered(rule: NewValue, native: Native, built: BuiltRun, new: KnobValue | None) -> Iterator[KnobValue]:
    scope = scope_of(built).with_own(value=native.value, new=new, **_unseen(built))
    if rule.to is not None:
        if native.value != rule.to and not _taken(native, rule.to, built):
            yield rule.to
    elif rule.start is not None and native.value in (None, -1):  # the framework's word for "all at once"
        default = None if native.fact is None else as_number(default_here(native.fact, built.natives))
        begins = _in_unit(as_number(rule.start), native, built)
        lower = default is not None and begins is not None and 0 < default <= begins and native.value is None
        if lower and rule.next is not None:
            yield from _row(rule, rule.next, default, scope.with_own(value=default), native, built)
        else:
            yield rule.start if begins is None else _like(rule.start, begins)
    elif rule.next is not None:
        yield from _row(rule, rule.next, native.value, scope, native, built)
    present = as_number(native.value)
    for one in rule.tries:
        value = as_number(one.of(scope))
        if value is not None and (present is None or value < present):
            yield value


def _in_unit(number: float | None, native: Native, built: BuiltRun) -> float | None:
    """A number of the knob in the unit of the key, where that counts in another (tokens of a picture, not pixels)."""
    rule = native.fact.from_knob if native.fact is not None else None
    if number is None or rule is None or not any(isinstance(node, Sum) for node in walk_tree(rule.tree)):
        return number
    return as_number(rule.of(RunScope(built.natives).with_own(value=int(number))))


def _unseen(built: BuiltRun) -> dict[str, None]:
    """Lengths that only have their defaults, where the launch was not seen whole: as good as not known."""
    knobs = {} if built.run.seen_whole else built.run.knobs
    found = {name for name in LENGTHS if name in knobs and knobs[name].source in ("default", "assumed")}
    derived = TOTAL in knobs and knobs[TOTAL].source == "derived" and found
    return dict.fromkeys((*found, TOTAL) if derived else found)


def _row(
    rule: NewValue, following: Expression, old: KnobValue | None, scope: RunScope, native: Native, built: BuiltRun
) -> Iterator[KnobValue]:
    """Down to the floor, which comes last, or up to the ceiling."""
    value = as_number(old)
    ends = (None if end is None else as_number(end.of(scope)) for end in (rule.floor, rule.ceiling))
    floor, ceiling = (_in_unit(end, native, built) for end in ends)
    if value is None or old is None:
        return
    for _ in range(MOST):
        made = as_number(following.of(scope.with_own(value=value)))
        made = None if made is None else round(made, ROUNDING)
        if made is None or (made <= (floor or 0) if floor is not None else made > (ceiling or made) or made <= value):
            break
        if floor is not None and made >= value:
            break
        value = made
        yield _like(old, value)
    if floor is not None and floor < value:
        yield _like(old, floor)


def _taken(native: Native, to: object, built: BuiltRun) -> bool:
    """Whether the value stands for a file that was not found: what is counted already is nothing to propose."""
    knob = built.run.knobs.get((native.fact.knob if native.fact is not None else None) or "")
    return built.run.unread is not None and knob is not None and not knob.key and knob.value == to


def least(rule: NewValue) -> int | None:
    """The floor that a row of values has whatever the run is; None where it has none."""
    fixed = rule.floor.tree if rule.floor is not None else None
    return fixed.value if isinstance(fixed, Constant) and type(fixed.value) is int else None


def printed_now(rule: NewValue, native: Native, facts: Facts) -> Native:
    """The native at the value that the log printed (the fact `now`), where no file sets it."""
    fact = value_of(facts, rule.now)
    if fact is None or native.setting is not None or isinstance(fact, bool):
        return native
    return replace(native, text=str(fact), value=fact, source="log")


def at_most(rule: NewValue, values: list[KnobValue], facts: Facts, present: KnobValue | None = None) -> list[KnobValue]:
    """Without the values above what the fact `at_most` shows to be possible, or at or below the fact `above`.

    `present`: the value in force where nothing is counted; those are left out, too, that fall by less than what the
    log shows to be missing, if any falls so far.
    """
    possible, missing, now = _number_of(facts, rule.at_most), _number_of(facts, rule.falls_by), as_number(present)
    if (least := _number_of(facts, rule.above)) is not None:
        values = [v for v in values if isinstance(v, (bool, str)) or v > least]
    if possible is not None:
        values = [v for v in values if isinstance(v, (bool, str)) or v <= possible]
    if missing is not None and now is not None:
        enough = [v for v in values if isinstance(v, (bool, str)) or v <= now - missing]
        return enough or values[-1:]
    return values


def _number_of(facts: Facts, name: str) -> float | None:
    return as_number(value_of(facts, name))


def within_context(knob: str | None, values: list[KnobValue], built: BuiltRun) -> list[KnobValue]:
    """Without lengths above the longest row that the model takes: there they cut nothing."""
    longest = built.run.model.context if built.run.model is not None else 0
    if not longest or knob not in (*LENGTHS, "rollout.max_model_len"):
        return values
    return [v for v in values if isinstance(v, (bool, str)) or v <= longest]


def _like(old: KnobValue, value: float) -> KnobValue:
    return int(value) if isinstance(old, int) else round(value, ROUNDING)


WORKED_HERE = "worked_here"
"""The entry of `reported` that says on which day it helped at this site."""


def worked_here(case: Case) -> str:
    """ "worked here on 2026-11-22": of a case of this site's own; "" of any other."""
    day = clean_line(str(case.reported.get(WORKED_HERE, "")), 20)
    return say("worked here on {day}", day=day) if day else ""


def reported_by(case: Case) -> str:
    """Which documented case, and how sure it is: "logic-rl-8 (confirmed)"."""
    return say("{case} ({grade})", case=case.id, grade=GRADES[case.grade])


class Reported(Struct, frozen=True):
    """What a documented case says of one value. `rank`: the best of its list is 0."""

    text: str
    rank: int
    confirmed: bool
    worked_here: str = ""
    """The day on which it helped at this site, in words; "" where it is no case of its own."""


def documented_values(native: Native, situation: Situation, same_version: bool = False) -> dict[str, Reported]:
    """Value → what matching cases report of it for this key, best match first.

    `same_version`: only cases whose library version is known to be the one here.
    """
    found: dict[str, Reported] = {}
    for case in situation.cases:
        versions = [name.removeprefix("version ") for name in case.situation if name.startswith("version ")]
        if same_version and not all(f"library.{library}" in situation.facts for library in versions):
            continue
        for value in case.values.get(native.key.removeprefix(EnvironmentPrefix), []):
            found.setdefault(
                str(value), Reported(reported_by(case), len(found), case.grade == "confirmed", worked_here(case))
            )
    return found


def of_framework(native: Native, situation: Situation) -> dict[str, Reported]:
    """Value → the confirmed case of this framework that ran with it, whatever died there; the mildest first."""
    name = situation.now.run.framework
    cases = [c for c in situation.knowledge.cases if c.grade == "confirmed" and c.situation.get("framework") == name]
    told = {str(value): case for case in cases for value in case.values.get(native.key, []) if is_number(str(value))}
    ranked = sorted(told, key=float, reverse=True)
    return {text: Reported(reported_by(told[text]), rank, False) for rank, text in enumerate(ranked)}


def with_documented(values: list[KnobValue], documented: Mapping[str, Reported], native: Native) -> list[KnobValue]:
    """Candidates with the documented values sorted in among them, in the same direction."""
    old = native.value
    if not values or isinstance(values[0], (bool, str)) or isinstance(old, bool) or not isinstance(old, (int, float)):
        return values
    lower = float(values[0]) < float(old)
    extra = [float(text) for text in documented if is_number(text)]
    extra = [v for v in extra if (v < old) == lower and v != old]
    if not extra:
        return values
    merged = {
        float(v): v
        for v in [*(int(e) if isinstance(old, int) else e for e in extra), *values]
        if not isinstance(v, (bool, str))
    }
    return [merged[v] for v in sorted(merged, reverse=lower)]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


WEIGHTS_OF_SHARE = 0.85
"""Part of an engine's share that its weights may take: start-up pass and cache need the rest (judgement)."""


WEIGHTS_OF_RAISED = 0.9
"""The same of a share that rises, which takes from the trainer what it gives (judgement)."""
USUAL_CARD = 80 * GIB
"""Of a card whose size nobody tells, to see how far an engine's share has to rise (judgement)."""


def no_room_for_engine(remedy: Remedy, value: KnobValue, before: Prediction, after: Prediction) -> str:
    """Why the engine has no room after the remedy gave its setting the value; "" where it has, or nobody knows."""
    if any(map(cannot_start, after.ledger.gpu)) and not any(map(cannot_start, before.ledger.gpu)):
        stuck = next((one for one in after.fit.findings if one.reason == "engine"), None)
        if stuck is not None:
            return finding_clause(stuck)
    return _filled_by_weights(value, before) if remedy.knob == SHARE and isinstance(value, float) else ""


def _filled_by_weights(share: float, now: Prediction) -> str:
    """That the weights leave hardly anything of a share, where it is known over how many cards they are spread."""
    run, card, spread = now.run, now.ledger.gpu_capacity, now.run.knobs.get("rollout.tensor_parallel")
    old = run.number(SHARE) or 1
    card = card or (USUAL_CARD if share > old else None)
    guessed = spread is not None and spread.value != 1 and spread.source in ("default", "assumed")
    if run.model is None or card is None or (guessed and not run.seen_whole) or share == old:
        return ""
    counted = [cell.expected for each in now.ledger.gpu for cell in each.cells if cell.owner == "engine_weights"]
    packed = run.number("rollout.weight_bits") or run.model.served_bits or run.number("actor.quantized_bits")
    whole = 0 if packed else BF16 * run.model.parameters // max(1, int(run.number("rollout.tensor_parallel") or 1))
    weights = max(counted, default=whole)
    # no engine starts so: what spreads it was not seen, unless it has cards of its own, which it needs whole
    spread_wider = weights > card and not run.seen_whole and run.topology.colocated
    if weights <= (WEIGHTS_OF_SHARE if share < old else WEIGHTS_OF_RAISED) * share * card or spread_wider:
        return ""
    return say("the engine's weights alone take {weights} of each card", weights=show_bytes(weights))


NO_KNOBS: Mapping[str, Knob] = {}


class Joined(Struct, frozen=True):
    """The overrides with the partners' own, in one of the forms that the dialect allows."""

    overrides: Mapping[str, str | None]
    kept: bool = False
    """A product is kept (batch times accumulation): what the key alone would change in the results stays."""
    caveats: tuple[str, ...] = ()


def forms(
    native: Native, overrides: Mapping[str, str | None], natives: Natives, knobs: Mapping[str, Knob] = NO_KNOBS
) -> list[Joined]:
    """The ways to make this change, best first; [] where the dialect demands a partner that cannot follow."""
    found = [Joined(overrides)]
    if native.fact is None or not native.fact.with_it:
        return found
    text = overrides.get(native.key)
    new = None if text is None else parse_value(text, native.fact.type)
    scope = ChosenScope(natives, knobs=knobs, own={"old": native.value, "new": new})
    for rule in native.fact.with_it:
        if not rule.eras or natives.era in rule.eras:
            found = [form for joined in found for form in _with(rule, joined, scope)]
    return found


def _with(rule: Partners, joined: Joined, scope: RunScope) -> list[Joined]:
    """The change with these partners, and without them where they need not follow."""
    old, new = scope.value("old"), scope.value("new")
    counts = as_number(old) and as_number(new) and old != new
    if (rule.keeps_product and not counts) or (rule.when is not None and rule.when.holds(scope) is not True):
        return [joined]
    alone = [] if rule.required else [joined]
    moved = {key: _moved(value, scope) for key, value in rule.sets.items()}
    for key, value in rule.given.items():
        if not rule.keeps_product:
            if (text := _moved(value, scope)) is not None:
                moved[key] = text
        elif scope.given(key) is not None:
            moved[key] = _moved(value, scope)
    if None in moved.values():
        return alone
    caveats = (*joined.caveats, *([rule.says] if rule.says else []))
    moved = {k: _as_it_stands(k, text, scope.natives) for k, text in moved.items()}
    moved = {key: text for key, text in moved.items() if not _stands(key, text, scope.natives)}
    with_them = Joined({**joined.overrides, **moved}, joined.kept or rule.keeps_product, caveats)
    return [with_them, *(alone if rule.keeps_product else [])]


def _as_it_stands(key: str, text: str | None, natives: Natives) -> str | None:
    """A switch as the file writes it now; items of a list behind those that are in it already."""
    known = natives.values.get(key)
    if known is None or known.fact is None or not known.given or text is None:
        return text
    if known.fact.type == "list":
        there, new = ([*filter(None, re.split(r"[\s,\[\]'\"]+", one))] for one in (known.text or "", text))
        return f"[{', '.join(dict.fromkeys((*there, *new)))}]" if not {*new} <= {*there} else known.text
    value = parse_value(text, known.fact.type)
    return spell(value, known.fact, known.text) if isinstance(value, bool) else text


def _stands(key: str, text: str | None, natives: Natives) -> bool:
    """Whether the partner has that value already, by the launch or by the framework's default."""
    known = natives.values.get(key)
    if known is None or known.fact is None or text is None:
        return False
    now = known.text
    if now is None and not known.given and (default := default_here(known.fact, natives)) is not None:
        now = str(default)
    return now is not None and parse_value(now, known.fact.type) == parse_value(text, known.fact.type)


def _moved(rule: Expression, scope: RunScope) -> str | None:
    """A partner's new value as text; None where it is neither a word nor a whole number from 1 on."""
    value: RuleValue | None = rule.of(scope)
    if isinstance(value, bool):
        return str(value).lower()
    number = as_number(value)
    if number is None:
        return value if isinstance(value, str) else None
    if number < 1 or number != int(number):
        return None
    return str(number) if isinstance(number, int) else str(int(number))
