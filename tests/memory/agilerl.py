"""Runs of the dialect agilerl as its run files describe them, on the cards they were measured on."""

from __future__ import annotations

from advisor.crash.evidence import NOTHING
from advisor.knowledge import load_knowledge
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import Recognised
from advisor.run.run import Run
from advisor.script.document import Setting
from advisor.script.launch import Launch

L4, A100 = ("NVIDIA L4", 23659151360), ("NVIDIA A100-SXM4-40GB", 42404806656)
TRAINING = ("log_prob", "actor_update", "optimizer_step")
GENERATION = ("rollout_init", "rollout_generate")


def machine(card: tuple[str, int]) -> Machine:
    """One card."""
    return Machine(1, (Gpu(0, *card),), Host(), libraries={"vllm": "0.23.0"})


def run_of(model: str, card: tuple[str, int], **settings: object) -> Run:
    """The run that these native settings describe."""
    knowledge = load_knowledge()
    framework = next(f for f in knowledge.frameworks if f.framework == "agilerl")
    given = tuple(Setting(key, str(value), "file") for key, value in settings.items())
    launch = Launch(0, "", (), {}, given)
    recognised = Recognised(framework, "", "the test")
    return build_run(RunInputs(recognised, launch, machine(card), knowledge.models, model_name=model)).run


def ledger_of(model: str, card: tuple[str, int], **settings: object) -> Ledger:
    """Its ledger."""
    return build_ledger(run_of(model, card, **settings), machine(card), NOTHING)


def fullest(ledger: Ledger, phases: tuple[str, ...]) -> tuple[int, int, int]:
    """Low, expected and high bytes of the fullest of `phases`."""
    top = max((s for s in ledger.gpu if s.phase in phases), key=lambda s: s.expected)
    return top.low, top.expected, top.high
