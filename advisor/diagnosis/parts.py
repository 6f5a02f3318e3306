"""Decides which parts a run has: rollouts, an engine beside the trainer, Ray, pictures. What nothing speaks for is not
there: no step, no question and no sentence is of it.
"""

from __future__ import annotations

from functools import lru_cache

from advisor.crash.evidence import Crash, Part, parts_in
from advisor.diagnosis.fact import Fact, Facts, value_of
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.language import say, sentences
from advisor.memory.inputs import SHARE
from advisor.memory.trainer import has_engine
from advisor.regex import regex
from advisor.run.natives import OF_ROLLOUTS, last_part
from advisor.run.recipe import recipe_of
from advisor.run.run import Run
from advisor.words import BETWEEN_SENTENCES, GENERATING, Phase

OF_ROLLOUTS_ALONE: frozenset[Phase] = GENERATING | {"log_prob", "critic_update"}
"""Phases that only a run has which generates answers, or scores them."""
_STRATEGIES = ("strategy", "parallel_strategy", "distributed_strategy", "dist_strategy")
"""Settings by which a program chooses itself how it is spread over cards (Lightning, ColossalAI)."""
_OF_ENGINES: frozenset[Phase] = frozenset({"rollout_init", "weight_sync"})
"""Nothing else starts or wakes."""
ENOUGH_SETTINGS = 3
"""Settings, none of which speaks of rollouts, that show a run without any (judgement)."""
_TRAINER = "transformers/trainer.py"
_RAY = regex(r"\bRay\b|\bray (?:stop|start|memory|status)\b")


def part_facts(run: Run, crash: Crash, text: str, generates: bool, facts: Facts) -> dict[str, Fact]:
    """rolls_out, has_engine, ray, images, wsl, as far as they are not facts already.

    `text`: the launch as it was written; `generates`: the user names a phase or a holder of rollouts alone.
    """
    dialect = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    written = " ".join((text, run.model_name, *(f"{one.key} {one.text}" for one in run.settings)))
    spoken = crash.speaks_of | parts_in(written)
    found = _rollouts(run, crash, spoken, dialect, facts, generates=generates)
    found |= _engine(run, crash, spoken, dialect, {**facts, **found})
    found |= _ray(crash, spoken, dialect, {**facts, **found})
    if "images" not in facts and "pictures" in spoken:
        found["images"] = Fact(True, "log", say("words of the launch or the log that only runs with pictures have"))
    if "tools" in spoken:
        found["runs_tools"] = Fact(True, "script", say("words of agents, tools or sandboxes in the launch or the log"))
    found |= _own_loop(crash, spoken, dialect, {**facts, **found})
    chosen = next((one for one in run.settings if last_part(one.key) in _STRATEGIES), None) if dialect is None else None
    if chosen is not None or (dialect is None and "lightning" in spoken):
        because = f"{chosen.key} {chosen.text}" if chosen is not None else say("Lightning's own strategies")
        found["own_launcher"] = Fact(True, "script", because)
    if "wsl" in spoken:
        found["wsl"] = Fact(True, "log", say("words of Windows' Linux (WSL) in the launch or the log"))
    if "sound" in spoken:
        found["rows_of_text"] = Fact(False, "log", say("the model's class: its rows are no text"))
    if run.algorithm == "rm":
        found["predicts_words"] = Fact(
            False, "script", say("a reward model scores a row, and has no logits of a vocabulary")
        )
    generates = (
        value_of({**facts, **found}, "rolls_out") is True
    )  # then a class without words is the critic's or reward's
    if spoken & {"sound", "classes"} and not generates:
        found["predicts_words"] = Fact(False, "log", say("the model's class: it has no logits of a vocabulary"))
    return found


def _own_loop(crash: Crash, spoken: frozenset[Part], dialect: Framework | None, facts: Facts) -> dict[str, Fact]:
    """Whether the trainer is none of transformers': frames of the user's own down to a library's without it between
    them, or rollouts of a framework that nobody knows."""
    if dialect is not None or "hf" in spoken:
        return {}
    own = [one for one in crash.frames if not _INSTALLED.search(one.file)]
    through = bool(own) and bool(_INSTALLED.search(crash.frames[-1].file)) and crash.frames[0] in own
    lightning = "lightning" in spoken
    jax = any(one.signature == "xla-oom" for one in crash.evidence) and "torch_xla" not in " ".join(crash.libraries)
    if not through and not jax and not lightning and value_of(facts, "rolls_out") is not True:
        return {}
    because = say("no word and no frame of transformers' Trainer")
    return {"own_loop": Fact(True, "log", because)}


_INSTALLED = regex(r"(?:site|dist)-packages/")


def spoken_here(text: str, facts: Facts) -> str:
    """The text on one line, without the sentences that speak of Ray in a run that shows no sign of it; all of it where
    nothing would be left."""
    line, others = _without_ray(text)
    return line if "ray" not in facts or facts["ray"].value is True else sentences(others) or line


@lru_cache(maxsize=4096)
def _without_ray(text: str) -> tuple[str, tuple[str, ...]]:
    """The text on one line, and its sentences that do not speak of Ray: a plan asks it of every remedy."""
    line = " ".join(text.split())
    return line, tuple(one for one in BETWEEN_SENTENCES.split(line) if not _RAY.search(one))


def _rollouts(
    run: Run, crash: Crash, spoken: frozenset[Part], dialect: Framework | None, facts: Facts, *, generates: bool
) -> dict[str, Fact]:
    """That nothing is rolled out, where no method is told and no word, phase or framework speaks of it."""
    if "rolls_out" in facts or run.algorithm != "unknown" or "frame.engine" in facts or spoken & {"rollouts", "engine"}:
        return {}
    whole = bool(run.settings) and not run.missing_files and not run.no_launch  # all of what starts it was seen
    seen = whole or len(run.settings) >= ENOUGH_SETTINGS
    seen = seen or any(frame.file.endswith(_TRAINER) for frame in crash.frames)
    made_for = dialect is not None and recipe_of(dialect.algorithm.default).answers == "generated"
    shown = generates or crash.phase in OF_ROLLOUTS_ALONE or _ray_died(crash)
    if not seen and (made_for or shown):
        return {}
    return {"rolls_out": Fact(False, "script", say("no word of rollouts in the launch or the log"))}


def _engine(
    run: Run, crash: Crash, spoken: frozenset[Part], dialect: Framework | None, facts: Facts
) -> dict[str, Fact]:
    """Whether a rollout engine stands beside the trainer, where dialect, method, launch or words tell."""
    if "frame.engine" in facts:
        return {}
    if run.framework == "unknown":
        alone = bool(run.settings) and "engine" not in spoken and crash.phase not in _OF_ENGINES
        because = say("no word of a rollout engine in the launch or the log")
        return {"has_engine": Fact(False, "script", because)} if alone else {}
    shared = {fact.knob for fact in dialect.settings.values()} if dialect is not None else {SHARE}
    shown = any(knob.startswith(OF_ROLLOUTS) and one.source == "log" for knob, one in run.knobs.items())
    alone = SHARE not in shared or (run.recipe.answers == "generated" and bool(run.settings) and not has_engine(run))
    if shown or not alone:
        return {}
    because = say("no engine beside the trainer in {framework}", framework=run.title)
    return {"has_engine": Fact(False, "script", because)}


def _ray(crash: Crash, spoken: frozenset[Part], dialect: Framework | None, facts: Facts) -> dict[str, Fact]:
    """Whether the run is a job of Ray: by its words, else where the framework starts every run that rolls out there."""
    rolls = value_of(facts, "rolls_out")
    usual = dialect is not None and dialect.on_ray and rolls is not False
    shown = usual or "ray" in spoken or _ray_died(crash)
    because = say("the launch, the log or the framework has Ray") if shown else say("no word of Ray")
    return {"ray": Fact(shown, "script", because)}


def _ray_died(crash: Crash) -> bool:
    return any(one.signature.startswith("ray-") for one in crash.evidence)
