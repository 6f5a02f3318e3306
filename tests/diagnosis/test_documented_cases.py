"""Every documented case, told to the tree by its situation, ends within seven questions in a cause that helps it."""

from __future__ import annotations

from advisor.diagnosis.fact import Fact
from advisor.diagnosis.tree import walk
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Case
from tests.loops import each

K = load_knowledge()
REMEDIES = {remedy.id: remedy for remedy in K.remedies}
FACTS = ("memory", "phase", "framework", "algorithm", "lora", "images", "sleep")
REGRESSION = {"change-library-version": "library-regression", "change-library-version-host": "host-library-leak"}
ANSWERS: dict[str, dict[str, str]] = {
    "lerobot-4009": {"ranks": "yes"},
    "rex-omni-110": {"holder": "states"},
    "search-r1-112": {"message": "fragmented"},
    "verl-3349": {"ended": "killed"},
    "roll-80": {"host_growth": "yes", "what_grows": "engine"},
    "simplevla-21": {"ever_ran": "card"},
    "swift-7822": {"sync": "gather"},
}
"""What only the one who sits before the machine can answer."""


def facts_of(case: Case) -> dict[str, Fact]:
    """What a log and a script of this case would have shown."""
    facts = {"verdict": Fact("oom", "log", "the case")}
    for name, value in case.situation.items():
        if value is None:
            continue
        facts[name if name in FACTS or name.startswith(("host.", "gpu.")) else f"knob.{name}"] = Fact(value, "log", "")
    signature = case.situation.get("signature")
    if signature is not None:
        facts |= {f"line.{signature}": Fact(True, "log", ""), "signature": Fact(str(signature), "log", "")}
    if case.remedies and case.remedies[0] in REGRESSION and any(name.startswith("version ") for name in case.situation):
        facts[f"advisory.cause.{REGRESSION[case.remedies[0]]}"] = Fact(True, "machine", "")
        facts.setdefault("host.grows", Fact(True, "log", ""))
    return facts


@each("case", K.cases, ids=lambda case: case.id)
def test_a_case_reaches_a_cause_in_seven_questions(case: Case) -> None:
    walked = walk(K.tree, facts_of(case), ANSWERS.get(case.id, {}))
    assert len(walked.steps) <= 7
    assert walked.cause.id != "unclear" or "memory" not in case.situation


@each("case", [case for case in K.cases if case.remedies], ids=lambda case: case.id)
def test_the_cause_knows_a_remedy_of_the_case(case: Case) -> None:
    """Or, where nothing but the memory is known, the remedies are for that memory."""
    cause = walk(K.tree, facts_of(case), ANSWERS.get(case.id, {})).cause
    here = set(case.remedies) & set(cause.remedies)
    same_memory = {name for name in case.remedies if REMEDIES[name].memory == cause.memory}
    assert here or (same_memory and "phase" not in case.situation), (cause.id, case.remedies)
