"""Converts between a framework's own values and knobs, by the `to_knob` and `from_knob` of its dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from advisor.knowledge.schema import SettingFact
from advisor.language import say
from advisor.rules.expression import Expression
from advisor.rules.tree import Call, Conditional, Constant, Name, Node, RuleValue, Sum, as_number, truth
from advisor.rules.tree import walk as walk_tree
from advisor.run.natives import Natives, RunScope
from advisor.run.run import KnobValue
from advisor.run.values import parse_value


class Converted(Struct, frozen=True, gc=False):
    """A knob's value and the arithmetic that gave it, in words."""

    value: KnobValue | None
    how: str = ""
    times_samples: bool = False
    """Prompts became sequences."""


def conversions(fact: SettingFact) -> Mapping[str, Expression | None]:
    """Knob → how the key's value becomes it, for every knob that the key carries."""
    return {**fact.also, **({fact.knob: fact.to_knob} if fact.knob is not None else {})}


def to_knob(value: KnobValue, rule: Expression | None, scope: RunScope) -> Converted:
    """What a native value comes to. A value that is not a number stays as it is where the rule calculates."""
    if rule is None:
        return Converted(value)
    scope = scope.with_own(value=value)
    tree, switch = _chosen(rule.tree, scope)
    nodes = [*walk_tree(tree)]
    if any(isinstance(node, Sum) for node in nodes):
        if as_number(value) is None:
            return Converted(value)
        made = tree.of(scope)
        return Converted(made, "" if made is None else f"{_told(tree, scope)} = {made}", Name("samples") in nodes)
    made = tree.of(scope)
    if switch and as_number(value) is not None and made != value and made is not None:
        return Converted(made, say("{value:g} becomes {to:g} with {key}", value=value, to=made, key=switch))
    return Converted(made)


def _chosen(tree: Node, scope: RunScope) -> tuple[Node, str]:
    """The branch that holds here, and the switch that chose it; "" where the value or the era did."""
    switch = ""
    while isinstance(tree, Conditional) and (held := truth(tree.when.of(scope))) is not None:
        names = [node.name for node in walk_tree(tree.when) if isinstance(node, Name)]
        switch = next((name for name in names if name not in ("value", "era")), "")
        tree = tree.then if held else tree.otherwise
    return tree, switch


class _Said(Node, frozen=True):
    """A name as it is told: its value, and what that counts."""

    text: str

    def __str__(self) -> str:
        return self.text


def _told(node: Any, scope: RunScope) -> Any:
    """The tree with values in place of its names."""
    if isinstance(node, Sum):
        return Sum(node.sign, _told(node.left, scope), _told(node.right, scope))
    if isinstance(node, Call) and node.function == "first":
        return _told(next((one for one in node.arguments if one.of(scope) is not None), node.arguments[-1]), scope)
    value = node.of(scope)
    if isinstance(node, Name) and node.name == "dp":
        return _Said(say("{value} data-parallel ranks", value=value))
    if isinstance(node, Name) and node.name == "samples":
        return _Said(say("{value} samples", value=value))
    if isinstance(node, Name) and node.name != "value":
        return _Said(f"{value:g} ({node.name})" if as_number(value) is not None else node.name)
    return _Said(str(value))


def speaks_in_words(rule: Expression | None) -> bool:
    """Whether the key's text is a word or a negation that stands for the knob's value, in every era the same."""
    if rule is None or rule.tree == Name("value"):
        return False
    nodes = list(walk_tree(rule.tree))
    return not any(isinstance(node, Sum) or node == Name("era") for node in nodes)


def meaning(rule: Expression, word: str | None, fact: SettingFact, natives: Natives) -> RuleValue | None:
    """What the knob is under a word of the framework."""
    return rule.of(RunScope(natives).with_own(value=None if word is None else parse_value(word, fact.type)))


def from_knob(fact: SettingFact, knob: str, target: KnobValue, natives: Natives, key: str) -> str | None:
    """The framework's own value under which `knob` becomes `target` and the other knobs of the key stay put.

    Where the key is not set at all, a switch that it turns off stays put, too; so does a part or a size that only the
    new value has. By `from_knob`, else by turning
    `to_knob` round where `value` occurs once, else by trying the words and numbers that it names; None where none does.
    """
    rules = conversions(fact)
    rule = rules[knob]
    if rule is None:
        return str(target)
    present = natives.values[key].text
    others = [r for name, r in rules.items() if name != knob and r is not None and speaks_in_words(r)]
    stated = _stated(fact, knob, target, natives)
    for word in (*stated, *_solved(rule, target, natives), *words_of(rule, fact)):
        means = meaning(rule, word, fact, natives)
        off = target is False and means is None and word in stated  # "none" is no value, and what the dialect calls off
        off = off and meaning(rule, present, fact, natives) is True
        joined = bool(target and fact.with_it) and word in stated  # its partners, which come along, put it in force
        if (off or joined or means == target) and all(
            meaning(r, word, fact, natives) == meaning(r, present, fact, natives)
            or (present is None and meaning(r, word, fact, natives) is False)
            or (word in stated and meaning(r, present, fact, natives) is None)
            for r in others
        ):
            return word
    return None


def words_of(rule: Expression, fact: SettingFact) -> list[str]:
    """Values that the dialect lists, texts that the expression tells apart (no patterns), or another of the key; true
    and false of a switch."""
    named = [str(node) if not isinstance(node.value, str) else node.value for node in walk_tree(rule.tree)
             if isinstance(node, Constant) and node.value is not None and "*" not in str(node.value)]  # fmt: skip
    trees = (one.tree for one in conversions(fact).values() if one is not None and speaks_in_words(one))
    nodes = (node for tree in trees for node in walk_tree(tree) if isinstance(node, Constant))
    others = (node.value for node in nodes if isinstance(node.value, str) and "*" not in node.value)
    switch = ("true", "false") if fact.type in ("bool", "flag") else ()
    return [*dict.fromkeys((*fact.words, *named, *others, *switch))]


def _stated(fact: SettingFact, knob: str, target: KnobValue, natives: Natives) -> list[str]:
    if fact.from_knob is None or knob != fact.knob:
        return []
    found = fact.from_knob.of(RunScope(natives).with_own(value=target))
    return [] if found is None else [str(found)]


def _solved(rule: Expression, target: KnobValue, natives: Natives) -> list[str]:
    """The value for which the branch that holds is `target`, found by undoing it from the outside in."""
    scope, wanted = RunScope(natives), target
    node, _ = _chosen(rule.tree, scope)
    if sum(isinstance(one, Name) and one.name == "value" for one in walk_tree(node)) != 1:
        return []
    while not isinstance(node, Name):
        if not isinstance(node, Sum) or node.sign == "%":
            return []
        on_left = any(isinstance(one, Name) and one.name == "value" for one in walk_tree(node.left))
        known = (node.right if on_left else node.left).of(scope)
        undone = _undone(node.sign, on_left, wanted, known)
        if undone is None:
            return []
        node, wanted = (node.left if on_left else node.right), undone
    return [str(int(wanted)) if isinstance(wanted, float) and wanted == int(wanted) else str(wanted)]


def _undone(sign: str, on_left: bool, wanted: RuleValue, known: RuleValue | None) -> RuleValue | None:
    """x of `x SIGN known == wanted`, or of `known SIGN x == wanted`; of a division rounded down the least one."""
    back: dict[tuple[str, bool], str] = {
        ("+", True): "-", ("+", False): "-", ("-", True): "+", ("*", True): "/", ("*", False): "/",
        ("/", True): "*", ("//", True): "*",
    }  # fmt: skip
    if (sign, on_left) in back:
        return Sum(back[sign, on_left], Constant(wanted), Constant(known)).of(_NOTHING)
    return Sum("-" if sign == "-" else "/", Constant(known), Constant(wanted)).of(_NOTHING) if sign != "//" else None


_NOTHING = RunScope(Natives(None, ""))
