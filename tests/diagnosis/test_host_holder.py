"""The table of memory users says who holds a node's RAM, and is held against what the model can explain."""

from advisor.crash.evidence import TopUser
from advisor.diagnosis.card_facts import host_user_facts, kind_of
from advisor.diagnosis.facts import Fact
from advisor.diagnosis.tree import walk
from advisor.knowledge import load_knowledge
from advisor.units import GIB

TREE = load_knowledge().tree
SMALL, SEVEN = 0.5e9, 7.6e9


def users(*rows: tuple[str, float]) -> list[TopUser]:
    return [TopUser(4711 + n, int(gib * GIB), name) for n, (name, gib) in enumerate(rows)]


def cause(held: list[TopUser], parameters: float | None, **knobs: bool) -> str:
    def told(value: str | bool) -> Fact:
        return Fact(value, "log", "line 7 of train.log", (0,))

    known = {"verdict": told("oom"), "memory": told("host")}
    known.update({f"knob.actor.{name}": told(value) for name, value in knobs.items()})
    return walk(TREE, {**known, **host_user_facts(held, parameters)}, {}).cause.id


def test_names_tell_the_kind_of_a_process() -> None:
    kinds = {"engine": ("ray::LLMRayActor", "VLLM::EngineCore", "sglang::scheduler_TP0", "ray::SGLangEngine")}
    kinds["driver"] = ("ray::TaskRunner.run", "ray::main_task", "python train_ppo_ray.py")
    kinds["workers"] = ("ray::WorkerDict.rm_compute_rm_score", "ray::MegatronTrainRayActor", "ray::ActorModelRayActor")
    kinds["tools"] = ("ray::KernelActor.execute", "ray::SandboxWorker.run", "python -m ipykernel_launcher")
    assert {kind: {kind_of(name) for name in names} for kind, names in kinds.items()} == {k: {k} for k in kinds}
    assert kind_of("ray::IDLE") == kind_of("sshd") == ""


def test_engines_at_the_top_of_the_table_are_the_holder() -> None:
    assert cause(users(*[("ray::LLMRayActor", 13.5)] * 6, ("ray::TaskRunner", 4)), SEVEN) == "engine-copies"


def test_an_interpreter_of_the_tools_at_the_top_is_the_holder_whatever_is_offloaded() -> None:
    table = users(("ray::KernelActor.execute", 138), ("ray::WorkerDict.update", 20))
    assert cause(table, SEVEN, optimizer_offload=True) == "tools-fill-host"


def test_a_driver_at_the_top_holds_batches() -> None:
    assert cause(users(("ray::TaskRunner.run", 400), ("ray::WorkerDict.update", 20)), SEVEN) == "object-store"


def test_workers_that_hold_what_no_state_explains_are_not_cured_by_offload() -> None:
    held = users(*[("ray::WorkerDict.rm_compute_rm_score", 118)] * 8)
    assert cause(held, SMALL, optimizer_offload=True) == "workers-hold-data"
    remedies = next(one for one in TREE.causes if one.id == "workers-hold-data").remedies
    assert not any("offload" in remedy for remedy in remedies)
    assert cause(held, 32e9, optimizer_offload=True) == "offload-fills-host"


def test_all_states_in_one_process_are_a_cpu_adam_and_no_copy_per_rank() -> None:
    held = users(("ray::ActorModelRayActor.init_model_from_pretrained", 112), ("ray::LLMRayActor", 13))
    assert cause(held, SEVEN) == "offload-fills-host"
    assert cause(users(*[("ray::ActorModelRayActor", 30)] * 4), SEVEN) == "host-too-small"


def test_what_the_table_says_is_not_asked() -> None:
    held = users(("ray::WorkerDict.update", 60), ("ray::LLMRayActor", 55), ("other", 50))
    facts = {"memory": Fact("host", "log", "line 7"), **host_user_facts(held, None)}
    step = next(one for one in walk(TREE, facts, {}).steps if one.question == "host_holder")
    assert step.source == "log"
