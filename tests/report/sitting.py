"""A whole State built by hand, so that the reports can be read before any room below them runs.

It tells a story like EasyR1 on 8 cards: host RAM ran out, offload goes off, one change would alter results.
Numbers are round on purpose; they are not claims about any real run.
"""

from __future__ import annotations

from pathlib import Path

from advisor.crash.evidence import Crash, Evidence, Frame, TopUser
from advisor.diagnosis.diagnosis import Advice, CaseMatch, Choice, Diagnosis, QuestionStep, RuledOut
from advisor.knowledge.schema import (
    Advisory,
    Answer,
    Case,
    Cause,
    EnvironmentFact,
    Era,
    Framework,
    KnobFact,
    Knowledge,
    Question,
    Recognition,
    Remedy,
    RemedyEvidence,
    SettingFact,
    Signature,
    Signatures,
    Tree,
)
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.memory.amount import in_bytes
from advisor.memory.cells import Cell, Ledger, Match, Owner, PhaseSum
from advisor.memory.fit import Fit
from advisor.plan.plan import Change, NotProposed, Plan, PlanStep
from advisor.run.run import Knob, ModelShape, Run, Topology
from advisor.script.document import Setting, Span
from advisor.session import SessionRequest, State
from advisor.state import Planned
from advisor.units import GIB
from tests.made_mechanics import made_mechanics
from tests.replacing import replace

OFFLOAD = "worker.actor.offload.offload_optimizer"

KNOWLEDGE = Knowledge(
    digest="0123456789ab",
    signatures=Signatures(
        signatures=(
            Signature(
                id="ray-memory-kill",
                title="Ray killed a task because the node ran low on memory",
                anchors=("memory usage threshold of",),
                pattern="was running was",
                memory="host",
                role="cause",
                verdict="oom",
                says="The node's RAM passed Ray's threshold.",
                sample="which exceeds the memory usage threshold of 0.95",
                look_alikes=("torch's OutOfMemoryError",),
                source="ray@2.9 memory_monitor",
            ),
        ),
        frames=(),
    ),
    frameworks=(
        Framework(
            framework="easyr1",
            title="EasyR1",
            package="verl",
            syntax="dotlist",
            recognised_by=(Recognition(programs=("verl.trainer.main",)),),
            eras=(Era(id="v0.3"),),
            settings={
                OFFLOAD: SettingFact(
                    knob="actor.optimizer_offload",
                    type="bool",
                    default=False,
                    moves={"actor_update": "gpu-", "all": "host"},
                    caveat="Two states of 4 bytes a parameter go to host RAM.",
                    source="EasyR1@b44b311 config.py:1",
                ),
            },
            environment={"RAY_memory_usage_threshold": EnvironmentFact(knob="host.ray_memory_threshold", default=0.95)},
            source="hiyouga/EasyR1@b44b311",
        ),
        Framework(
            framework="verl",
            title="verl",
            package="verl",
            syntax="hydra",
            recognised_by=(),
            settings={
                "actor_rollout_ref.actor.fsdp_config.optimizer_offload": SettingFact(knob="actor.optimizer_offload"),
            },
        ),
    ),
    tree=Tree(
        start="memory",
        questions=(
            Question(
                id="memory",
                asks="Which memory ran out?",
                why="The remedies are opposite.",
                answers={"gpu": Answer(title="GPU memory"), "host": Answer(title="Host RAM")},
                if_unknown="Look for the first traceback.",
            ),
        ),
        causes=(
            Cause(
                id="host-copies",
                title="Copies of weights and optimizer states in host RAM",
                explains="Offload keeps them there.",
                memory="host",
                remedies=("turn-off-optimizer-offload",),
                folklore=("raise-accumulation",),
                record_next_time="RSS of every process.",
            ),
        ),
    ),
    remedies=(
        Remedy(
            id="turn-off-optimizer-offload",
            title="Keep the optimizer states on the cards",
            kind="setting",
            knob="actor.optimizer_offload",
            memory="host",
            tier="free",
            results="unchanged",
            costs="GPU memory in every phase",
            says="They leave host RAM.",
            evidence=(RemedyEvidence(case="easyr1-59", grade="plausible", because="no figures"),),
            source="EasyR1@b44b311",
        ),
    ),
    advisories=(
        Advisory(
            id="deepspeed-0.16-leak",
            library="deepspeed",
            versions=">=0.16.0,<0.16.8",
            title="Gathered weights are not given back",
            says="ZeRO-3 keeps them.",
            safe=(">=0.16.8",),
            source="DeepSpeed#7117",
        ),
    ),
    cases=(
        Case(
            id="easyr1-59",
            title="EasyR1 on 8 cards of 40 GB",
            source="https://github.com/hiyouga/EasyR1/issues/59",
            situation={"framework": "easyr1", "memory": "host"},
            reported={"worked": ["offload_params=false"]},
            mechanism="Offload explains a part of it.",
            grade="plausible",
            folklore=("gradient accumulation",),
            remedies=("turn-off-optimizer-offload",),
        ),
    ),
    models=(),
    gpus=(),
    knobs=(KnobFact(id="actor.optimizer_offload", title="Optimizer states in host RAM", unit="on/off", type="bool"),),
)


def cell(owner: Owner, gib: float) -> Cell:
    """A cell with a range of a tenth either way."""
    size = int(gib * GIB)
    return Cell(owner, in_bytes("", size, low=int(size * 0.9), high=int(size * 1.1)))


def ledger(optimizer_on_gpu: bool) -> Ledger:
    """Two phases on the card, one on the host."""
    moved = 8.0
    return Ledger(
        gpu_capacity=40 * GIB,
        host_limit=760 * GIB,
        gpu=(
            PhaseSum(
                "rollout_generate",
                "gpu",
                (
                    cell("kv_cache", 12),
                    cell("optimizer", moved if optimizer_on_gpu else 0),
                ),
            ),
            PhaseSum("actor_update", "gpu", (cell("weights", 4),)),
        ),
        host=(
            PhaseSum(
                "actor_update",
                "host",
                (
                    cell("offloaded_optimizer", 0 if optimizer_on_gpu else 64),
                    cell("unexplained", 416),
                ),
            ),
        ),
        assumed=("the vision tower is as large as in Qwen2.5-VL-7B",),
    )


OFF = PlanStep(
    id="turn-off-optimizer-offload",
    rank=1,
    title="Keep the optimizer states on the cards",
    kind="setting",
    tier="free",
    changes=(Change(OFFLOAD, "true", "false", "run.sh", 9, "added as an override"),),
    results="unchanged",
    basis="computed",
    saves={"actor_update": 64 * GIB},
    place="host",
    why="The optimizer's two states leave host RAM. They fit on the cards in every phase.",
    costs="8.00 GiB on every card, in every phase",
    caveats=("The rollout is then the tightest phase.",),
    sources=("hiyouga/EasyR1@b44b311 verl/workers/fsdp_workers.py", "easyr1-59"),
    documented="easyr1-59: false",
    selected=True,
    host_saves={"rollout_generate": -8 * GIB},
)
SMALLER = PlanStep(
    id="fewer-prompts",
    rank=2,
    title="Fewer prompts per rollout",
    kind="setting",
    tier="changes_results",
    changes=(Change("data.rollout_batch_size", None, "256", "run.sh", 9, "added as an override"),),
    results="changed",
    basis="estimated",
    saves={"data": 4 * GIB},
    place="host",
    why="Half the prompts are in flight.",
    costs="",
)


def crash() -> Crash:
    """Ray's kill, with its table."""
    return Crash(
        verdict="oom",
        memory="host",
        phase="actor_update",
        signature="ray-memory-kill",
        evidence=(
            Evidence(
                signature="ray-memory-kill",
                role="cause",
                file="train.log",
                line=207,
                text="Memory on the node was 726.33GB / 760.00GB (0.9557), over the threshold of 0.95",
                memory="host",
                phase="actor_update",
                fields={"used_bytes": int(726.33 * GIB), "total_bytes": 760 * GIB, "fraction": 0.9557000000001},
                repeats=2,
            ),
            Evidence(
                "ray-actor-died", "pointer", "train.log", 230, "The actor died unexpectedly", process="WorkerDict"
            ),
        ),
        frames=(Frame("dp_actor.py", 240, "update_policy", 201),),
        phase_because="the last progress line is Update policy (train.log:198)",
        top_users=(TopUser(4227, int(68.4 * GIB), "ray::WorkerDict.update_actor"),),
        libraries={"ray": "2.40.0"},
        frameworks=("easyr1",),
        lines_read=260,
    )


def diagnosis() -> Diagnosis:
    """One question answered by the log, one not answered."""
    return Diagnosis(
        cause="host-copies",
        title="Copies of weights and optimizer states in host RAM",
        explains="Offload keeps twelve bytes a parameter in host RAM.",
        basis="computed",
        memory="host",
        phase="actor_update",
        path=(
            QuestionStep(
                question="memory",
                asks="Which memory ran out?",
                why="The remedies are opposite.",
                choices=(Choice("gpu", "GPU memory"), Choice("host", "Host RAM")),
                answer="host",
                source="log",
                because="train.log line 207",
                evidence=(0,),
            ),
            QuestionStep(
                question="growth",
                asks="Did RAM grow from step to step?",
                why="A leak has another remedy.",
                choices=(Choice("yes", "Yes"), Choice("no", "No")),
                answer="unknown",
                source="unknown",
                if_unknown="Watch RSS over ten steps.",
            ),
        ),
        less_likely=(RuledOut("gpu-oom", "A card ran out", "no allocator message in 260 lines"),),
        cases=(
            CaseMatch(
                "easyr1-59",
                "EasyR1 on 8 cards of 40 GB",
                "https://github.com/hiyouga/EasyR1/issues/59",
                5,
                5,
                alike=True,
            ),
        ),
        advisories=(Advice("ray-old", "ray", "2.40.0", "An old Ray", "It counts shared memory twice.", "ray#1"),),
        remarks=("Ray killed main_task, which held 0.87 GiB: it is the victim, not the cause.",),
        record_next_time="RSS of every process, once a step.",
        open_questions=("growth",),
    )


def plan() -> Plan:
    """One step selected, one offered."""
    return Plan(
        steps=(OFF, SMALLER),
        before=ledger(False),
        after=ledger(True),
        margin=0.08,
        fit=Fit("fits"),
        not_proposed=(NotProposed("raise-accumulation", "More gradient accumulation", "it does not lower the peak"),),
    )


def run() -> Run:
    """EasyR1 on 8 cards."""
    return Run(
        framework="easyr1",
        title="EasyR1",
        era="v0.3",
        algorithm="grpo",
        model=ModelShape("Qwen2.5-VL-7B", 8_292_166_656, 3584, 28, 18944, 28, 4, 128, 152064, False),
        model_name="Qwen/Qwen2.5-VL-7B-Instruct",
        topology=Topology(gpus_per_node=8, actor_gpus=8, rollout_gpus=8, tensor_parallel=2),
        knobs={"actor.optimizer_offload": Knob("actor.optimizer_offload", True, "script", OFFLOAD)},
        mechanics=made_mechanics(),
        settings=(
            Setting(OFFLOAD, "true", "file", span=Span("conf/vl.yaml", 22, 610, 614)),
            Setting(
                "data.files", None, "command", resolved=False, reason="$DATA is not set", span=Span("run.sh", 7, 90, 95)
            ),
            Setting("lora_targets", ("q_proj", "v_proj"), "command", effective=False, span=Span("run.sh", 8, 100, 113)),
        ),
        recognised_by="program verl.trainer.main",
    )


def machine() -> Machine:
    """8 cards of 40 GB, 760 GB of RAM."""
    return Machine(
        nodes=1,
        gpus=tuple(Gpu(index, "NVIDIA A100-SXM4-40GB", 40 * GIB) for index in range(8)),
        host=Host(total_bytes=760 * GIB, shm_bytes=380 * GIB),
        libraries={"ray": "2.40.0", "torch": "2.5.1"},
        sources={"gpus": "described", "host.total": "described"},
        problems=("NVML: there is no driver library on this machine.",),
    )


def sitting() -> State:
    """The whole story."""
    return State(
        asked=SessionRequest(script=Path("run.sh"), logs=(Path("train.log"),)),
        knowledge=KNOWLEDGE,
        machine=machine(),
        script=None,
        launch_index=0,
        run=run(),
        crash=crash(),
        ledger=ledger(False),
        attribution=(
            Match("fp32 logits", 4 * GIB, "4 x 3072 x 152064", "4 B x tokens x vocabulary", "actor_update", True),
        ),
        diagnosis=diagnosis(),
        planned=Planned.as_given(plan()),
        answers={},
    )


def unknown_sitting() -> State:
    """A log that proves nothing, a script nobody knows, a machine nobody described."""
    nothing = Crash("unclear", "unknown", "unknown", unclear_because="the log ends without an error", lines_read=12)
    known = sitting()
    return replace(
        known,
        machine=Machine(),
        run=Run("unknown", "unknown framework", "", "unknown", None, "", Topology(known=False), {}, made_mechanics()),
        crash=replace(nothing, settle_by=("the worker's .err file",)),
        ledger=Ledger(None, None, (), (), missing=("the model is not known",)),
        attribution=(),
        diagnosis=Diagnosis("", "", "", "estimated", "unknown", "unknown", ()),
        planned=Planned.as_given(Plan((), None, None, 0.08, Fit("cannot_be_said"))),
    )
