"""Finds the framework in whose own keys a launch is written, and the keys that an era lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from advisor.hostile import clean_line
from advisor.knowledge.key_space import key_space, keys_at, keys_ever
from advisor.knowledge.schema import Framework
from advisor.language import say
from advisor.regex import regex
from advisor.run.natives import native
from advisor.run.unknown_keys import known_share
from advisor.script.launch import Launch

LEAST_OWN = 2
"""Keys that no other framework reads: one alone may be anybody's option."""
LEAST_WORDS = 4
"""Words of a key that by itself tells whose it is: "log-probs-chunk-size" (judgement)."""
_JOINTS = frozenset("._-")
_JOINT = regex(r"[.-]")
"""What joins the words of a key."""
LEAST_SHARE = 0.6
"""Of all keys of a launch that nothing but its words tells; a stranger on the same Trainer shares half."""


def own_keys(launch: Launch, frameworks: Sequence[Framework]) -> dict[str, list[str]]:
    """Keys of the launch by the one package that reads them, in the order of the launch.

    Frameworks of one package (a framework and its forks) share their words. A single word (`swiglu`) is anybody's, and
    `key=value` is no word of a framework that takes options.
    """
    found: dict[str, list[str]] = {}
    for setting in launch.settings:
        key, bare = native(setting.key), setting.origin == "command" and not setting.key.startswith("-")
        packages = {one.package for one in frameworks if _reads(one, key) and not (bare and one.syntax == "argparse")}
        if len(packages) == 1 and set(key) & _JOINTS and key not in found.get(min(packages), ()):
            found.setdefault(packages.pop(), []).append(key)
    return found


def by_words(launch: Launch, frameworks: Sequence[Framework]) -> tuple[Framework, list[str]] | None:
    """The framework in whose words alone the launch is written, and the keys that prove it; None where none is. One
    that stops at a strange option would not have begun a launch that has one: then it is another's."""
    owned = own_keys(launch, frameworks)
    package = max(owned, key=lambda name: len(owned[name]), default="")
    keys = owned.get(package, [])
    if len(keys) < LEAST_OWN or any(len(others) == len(keys) for name, others in owned.items() if name != package):
        return None
    shares = [(known_share(one, launch) or 0.0, one) for one in frameworks if one.package == package]
    # of a package and its forks that all know these words, it is the package's own
    share, framework = max(shares, key=lambda pair: (pair[0], pair[1].framework == package))
    space = key_space(framework.framework)
    least = 1.0 if framework.syntax == "argparse" and space is not None and space.refuses else LEAST_SHARE
    return (framework, keys) if share >= least else None


def by_named_keys(words: Sequence[str], frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    """The framework whose option or path of keys a person names, one of several words that nobody else reads; None
    where those of several are named. (What only underscores join may be a name of anybody's program.)"""
    owned: dict[str, str] = {}
    for word in words:
        if _JOINT.search(word) and len(_JOINT.split(word.replace("_", "-"))) >= LEAST_WORDS:
            packages = {one.package for one in frameworks if _reads(one, word)}
            if len(packages) == 1:
                owned.setdefault(packages.pop(), word)
    if len(owned) != 1:
        return None
    ((package, key),) = owned.items()
    framework = next((one for one in frameworks if one.framework == package), None)
    return (framework, say("named in the text: {name}", name=clean_line(key, 60))) if framework is not None else None


def outspoken(framework: Framework, launch: Launch, frameworks: Sequence[Framework]) -> bool:
    """Whether the launch has more words of another framework alone than of this one."""
    owned = own_keys(launch, frameworks)
    own = len(owned.get(framework.package, []))
    return any(len(keys) >= LEAST_OWN and len(keys) > own for keys in owned.values())


def strangers(framework: Framework, era: str, keys: Iterable[str], added: Collection[str] = ()) -> int:
    """How many of `keys` other eras have and this one has not, and of `added` this one has.

    `added`: keys that hydra is told to add; it refuses to where they exist.
    """
    here, ever = keys_at(framework.framework, era), keys_ever(framework.framework)
    return sum(key in ever and key not in here for key in keys) + sum(key in here for key in added)


def _reads(framework: Framework, key: str) -> bool:
    """Whether some version of the framework names the key, spelt like this, as its own and not a launcher's."""
    fact = framework.settings.get(key)
    if fact is not None and fact.only_in:
        return False
    return fact is not None or key in framework.renamed or key in keys_ever(framework.framework)
