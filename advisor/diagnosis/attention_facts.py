"""Finds whether a run computes plain (eager) attention over long rows, or may do so because nothing tells otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.diagnosis.fact import Fact
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.language import say
from advisor.rules.functions import version_in
from advisor.run.run import Run

KNOB, LENGTH = "actor.flash_attention", "data.total_tokens"
LONG = 2048
"""Tokens from which the scores of plain attention count: heads × length² values in every layer (judgement)."""
SDPA_SINCE = ">=4.36"
"""transformers takes torch's fused attention by itself from this version on, where the model has it."""
NAMES = frozenset(("attn_implementation", "_attn_implementation", "attn_impl", "flash_attn", "use_flash_attn"))
PLAIN = frozenset(("eager", "disabled", "off"))
OF_EAGER = frozenset(("eager_attention", "use_eager_attention", "force_eager_attention"))


def attention_facts(run: Run, libraries: Mapping[str, str]) -> dict[str, Fact]:
    """attention.eager and attention.unsure, each only where it holds."""
    plain = {*((name, word) for name in NAMES for word in PLAIN), *((name, "true") for name in OF_EAGER)}
    stated = next((one for one in run.settings if (_name(one.key), one.text.lower()) in plain), None)
    if stated is not None:
        return {"attention.eager": Fact(True, "script", f"{stated.key} {stated.text}")}
    dialect = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    length, knob = run.number(LENGTH), run.knobs.get(KNOB)
    if dialect is None or length is None or length < LONG or not _carried(dialect):
        return {}
    if knob is not None and knob.value is False:
        return {"attention.eager": Fact(True, "script", knob.note or say("{key} is not set", key=knob.key))}
    known = knob is not None and knob.value is True
    version = libraries.get("transformers")
    by_default = knob is not None and knob.source in ("default", "assumed")
    if known and not (run.era_assumed and by_default and _was_plain(dialect)):
        return {}
    if not known and version is not None and version_in(SDPA_SINCE, version):
        return {}
    told = say("nothing tells which attention computes rows of {length:g} tokens", length=length)
    return {"attention.unsure": Fact(True, "script", told)}


def _name(key: str) -> str:
    return key.lstrip("-+").replace("-", "_").rpartition(".")[2]


def _carried(dialect: Framework) -> bool:
    return any(fact.knob == KNOB for fact in dialect.settings.values())


def _was_plain(dialect: Framework) -> bool:
    """Whether attention was the plain one by default in some version of the framework."""
    defaults = (fact.default for fact in dialect.settings.values() if fact.knob == KNOB)
    texts = (str(each).lower() for one in defaults for each in (one.values() if isinstance(one, Mapping) else (one,)))
    return any(text in {*PLAIN, "false"} for text in texts)
