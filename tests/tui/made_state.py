"""Sittings built by hand: an EasyR1-like host-RAM crash and a crash on the GPU; and a driver that needs no files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from advisor.crash.evidence import Crash, Evidence, TopUser
from advisor.diagnosis.diagnosis import UNKNOWN, CaseMatch, Choice, Diagnosis, QuestionStep, RuledOut
from advisor.knowledge.schema import Case, Knowledge, Signatures, Tree
from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.machine.live import GaugeSnapshot, GpuGauge
from advisor.memory.amount import in_bytes
from advisor.memory.cells import Cell, Ledger, Owner, PhaseSum, Place
from advisor.memory.fit import Fit
from advisor.plan.plan import Change, NotProposed, Plan, PlanStep
from advisor.report.page_report import page_report
from advisor.run.run import Knob, ModelShape, Run, Topology
from advisor.script.document import Setting, Span
from advisor.script.launch import Script
from advisor.session import ChosenSet, SessionRequest, State
from advisor.state import Planned
from advisor.tui.driver import Preview, Saved
from advisor.words import Phase
from tests.made_mechanics import made_mechanics
from tests.replacing import replace

G = 2**30
KNOWLEDGE = Knowledge(
    digest="made",
    signatures=Signatures(signatures=(), frames=()),
    frameworks=(),
    tree=Tree(start="memory", questions=(), causes=()),
    remedies=(),
    advisories=(),
    cases=(
        Case(
            "easyr1-59",
            "EasyR1 on 8 × A100 40 GB, Qwen2.5-VL-7B",
            "github",
            {},
            {},
            "Offload keeps copies in host RAM.",
            "plausible",
            remedies=("optimizer-offload-off",),
        ),
    ),
    models=(),
    gpus=(),
    knobs=(),
)
LOG_LINES = 41_260
MEMORY_CHOICES = (Choice("gpu", "GPU memory"), Choice("host", "Host RAM"), Choice("shm", "Shared memory (/dev/shm)"))


def machine(gpus: int = 8) -> Machine:
    """8 × A100 40 GB, 760 GB of RAM."""
    return Machine(
        nodes=1,
        gpus=tuple(Gpu(index, "A100", 40 * G) for index in range(gpus)),
        host=Host(total_bytes=760 * G, shm_bytes=380 * G),
        libraries={"torch": "2.5.1", "ray": "2.40.0"},
        environment="/opt/conda/envs/verl",
        sources={"gpus": "described", "host.total": "log", "libraries": "measured"},
        problems=("NVML: no driver library (libnvidia-ml.so.1) on this machine",),
    )


def snapshot(gpus: int = 8, at: float = 1.0) -> GaugeSnapshot:
    """Live gauges: the first card half full, the others idle, one of them lost."""
    rows = []
    for index in range(gpus):
        used = 18 * G if index == 0 else 1 * G
        who = (GpuProcess(4242, used, "ana", 900.0, 3 * G, "python3 -m verl.trainer.main"),) if index == 0 else ()
        gpu = Gpu(index, "A100", 40 * G, used, "", 7 * index, 31 + index, 61.5, 400.0, who)
        rows.append(GpuGauge(gpu, at, history=(G, 9 * G, 30 * G, used), peak_bytes=30 * G if index == 0 else used))
    if gpus > 2:
        lost = replace(rows[-1].gpu, problem="GPU is lost: it fell off the bus")
        rows[-1] = replace(rows[-1], gpu=lost, stale=True)
    return GaugeSnapshot(
        at, tuple(rows), Host(total_bytes=760 * G, used_bytes=91 * G, shm_bytes=380 * G, shm_used_bytes=G), 99 * G
    )


def cells(phase: Phase, place: Place, **sizes: float) -> PhaseSum:
    """A phase's sum from owner=GiB."""
    made = [
        Cell(owner, in_bytes("by the book", round(size * G), low=round(size * 0.8 * G), high=round(size * 1.3 * G)))
        for owner, size in sizes.items()
        if owner in Owner.__args__
    ]
    return PhaseSum(phase, place, tuple(made))


def ledger(optimizer_on_gpu: bool, weights_on_gpu: bool) -> Ledger:
    """Host copies move to the GPU where offload is off."""
    host = {"processes": 64.0, "engine_copy": 122.0, "reference": 30.0}
    host |= {} if optimizer_on_gpu else {"offloaded_optimizer": 61.0}
    host |= {} if weights_on_gpu else {"offloaded_weights": 30.0}
    explained = sum(host.values())
    host["unexplained"] = 416.0
    gpu = {"weights": 3.8, "gradients": 3.8, "optimizer": 7.6, "activations": 10.9}
    generate = {"engine_weights": 7.1, "kv_cache": 15.0, "context": 0.6}
    generate |= {"weights": 3.8} if weights_on_gpu else {}
    generate |= {"optimizer": 7.6} if optimizer_on_gpu else {}
    assert explained > 0
    return Ledger(
        40 * G,
        760 * G,
        (cells("rollout_generate", "gpu", **generate), cells("actor_update", "gpu", **gpu)),
        (cells("rollout_generate", "host", **host), cells("actor_update", "host", **host)),
        "estimated",
        assumed=("activations: eager attention was assumed",),
    )


def step(name: str, key: str, old: str, new: str, **more: object) -> PlanStep:
    """A step of one change."""
    made = PlanStep(
        id=name,
        rank=1,
        title=f"Change {key.rsplit('.', 1)[-1]}",
        kind="setting",
        tier="free",
        changes=(Change(key, old, new, "/home/ana/run.sh", 9, "added as an override"),),
        results="unchanged",
        basis="computed",
        saves={"actor_update": 61 * G, "rollout_generate": 61 * G},
        place="host",
        why="With it, every rank keeps its share of the optimizer in host RAM.",
        costs="the GPU holds them instead",
        sources=("hiyouga/EasyR1@1 verl/workers/fsdp_workers.py:1",),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def steps() -> tuple[PlanStep, ...]:
    """Four steps: two that help, a risky one, and one that changes results."""
    actor = "worker.actor.offload"
    return (
        step(
            "optimizer-offload-off", f"{actor}.offload_optimizer", "true", "false", selected=True,
            host_saves={"rollout_generate": -7 * G},
        ),
        step(
            "param-offload-off", f"{actor}.offload_params", "true", "false", selected=True,
            saves={"actor_update": 30 * G},
        ),
        step(
            "ray-threshold", "RAY_memory_usage_threshold", "0.95", "0.97", kind="environment", basis="documented",
            saves={"actor_update": -15 * G},
            caveats=("only moves the cliff: the kernel kills next, without a message",),
            conflicts=("smaller-batch",),
        ),
        step(
            "smaller-batch", "data.rollout_batch_size", "512", "256", results="changed", basis="estimated",
            saves={"actor_update": 4 * G},
        ),
    )  # fmt: skip


def plan_of(chosen: tuple[PlanStep, ...]) -> Plan:
    """The plan with the ledger after the selected steps."""
    on = {one.id for one in chosen if one.selected}
    after = ledger("optimizer-offload-off" in on, "param-offload-off" in on)
    return Plan(
        chosen,
        ledger(False, False),
        after,
        0.08,
        fit=Fit("fits" if len(on) >= 2 else "does_not_fit"),
        fit_now=Fit("does_not_fit"),
        not_proposed=(NotProposed("accumulation", "More gradient accumulation", "it does not lower the peak"),),
    )


def evidence(log: str = "/home/ana/train.log") -> tuple[Evidence, ...]:
    """Ray's kill, its table, and the last progress line."""
    return (
        Evidence(
            "ray-memory-kill",
            "cause",
            log,
            41_207,
            "Memory on the node (IP: 10.0.0.1) was 726.33GB / 760.00GB (0.955697), which exceeds the threshold of 0.95",
            "host",
            fields={"node_used_bytes": 726 * G, "node_total_bytes": 760 * G, "threshold": 0.95},
        ),
        Evidence("ray-top-users", "telemetry", log, 41_211, "8 × WorkerDict.update_actor, 68.4 GB each"),
        Evidence("progress", "progress", log, 41_198, "Update policy:  31%|███       | 5/16 [02:11<04:50]"),
    )


def path(memory: str = "host") -> tuple[QuestionStep, ...]:
    """Three questions; the first may be answered by the user."""
    return (
        QuestionStep(
            "memory",
            "Which memory ran out?",
            "the remedies are opposite: offload moves bytes from the GPU to the host, so turning it on cures one "
            "and causes the other.",
            MEMORY_CHOICES,
            memory,
            "log" if memory == "host" else "user",
            "Ray's kill line" if memory == "host" else "",
            (0,) if memory == "host" else (),
            "Look for the first traceback, then `dmesg -T | grep -i oom`.",
            "" if memory == "host" else "host",
        ),
        QuestionStep(
            "framework", "Which framework runs it?", "settings have other names elsewhere.",
            (Choice("easyr1", "EasyR1"), Choice("verl", "verl")), "easyr1", "script", "line 6 runs verl.trainer.main",
        ),
        QuestionStep(
            "growth", "Does host RAM grow from step to step?", "a leak is not cured by a smaller setting.",
            (Choice("yes", "Yes, every step"), Choice("no", "No, it is full from the first step")), UNKNOWN, "unknown",
            if_unknown="Watch `free -g` over three steps.",
        ),
    )  # fmt: skip


def diagnosis(memory: str = "host") -> Diagnosis:
    """The cause follows the first answer."""
    host = memory == "host"
    return Diagnosis(
        "host-copies" if host else "unsettled",
        "host copies: FSDP offload, sleeping engines, reference" if host else "not settled",
        "Offload keeps parameters and optimizer in host RAM, once per rank.",
        "documented",
        "host" if host else "unknown",
        "actor_update",
        path(memory),
        (),
        (RuledOut("gpu-oom", "GPU memory", "no allocator message in 41 260 lines; 7 of 8 cards idle", "memory"),),
        (CaseMatch("easyr1-59", "EasyR1 on 8 × A100 40 GB, Qwen2.5-VL-7B", "github", 5, 5, alike=True),),
        remarks=(
            "Ray killed main_task at 726.3 of 760.0 GB (95.6 %, limit 95.0 %); it held 0.9 GB and is the victim, "
            "not the cause.",
            "416 GB are not explained by any setting.",
        ),
        record_next_time="host RAM once a minute",
    )


def run() -> Run:
    """EasyR1 GRPO on 8 GPUs."""
    key = "worker.actor.offload.offload_"
    settings = tuple(
        Setting(key + name, "true", "file", span=Span("/home/ana/conf/vl.yaml", line, 0, 4))
        for name, line in (("params", 21), ("optimizer", 22))
    )
    shape = ModelShape("Qwen2.5-VL-7B", 8_292_166_656, 3584, 28, 18944, 28, 4, 128, 152064, False, note="models.yaml")
    knobs = {
        "actor.param_offload": Knob("actor.param_offload", True, "script", key + "params"),
        "actor.optimizer_offload": Knob("actor.optimizer_offload", True, "script", key + "optimizer"),
        "rollout.memory_share": Knob("rollout.memory_share", 0.6, "default", "worker.rollout.gpu_memory_utilization"),
    }
    return Run(
        "easyr1", "EasyR1", "0.3", "grpo", shape, "Qwen/Qwen2.5-VL-7B-Instruct",
        Topology(1, 8, 8, 8, 1), knobs, made_mechanics(), settings,
        recognised_by="program verl.trainer.main (run.sh:6)",
    )  # fmt: skip


def host_crash(script: Path | None = Path("/home/ana/run.sh"), log: str = "/home/ana/train.log") -> State:
    """The EasyR1 story."""
    crash = Crash(
        "oom", "host", "actor_update", "ray-memory-kill", evidence(log),
        top_users=(*(TopUser(pid, 68 * G, "ray::WorkerDict.update_actor") for pid in range(8)),), lines_read=LOG_LINES,
        settings={"worker.actor.offload": "true"},
    )  # fmt: skip
    plan = plan_of(steps())
    given = Script((), ()) if script else None
    asked = SessionRequest(script=script, logs=(Path(log),))
    return State(
        asked, KNOWLEDGE, machine(), given, 0, run(), crash, plan.before, (), diagnosis(), Planned.as_given(plan), {}
    )  # type: ignore[arg-type]


def gpu_crash() -> State:
    """An allocator's message on the GPU; the plan fits without changing results."""
    state = host_crash()
    cause = Evidence(
        "torch-oom", "cause", "/home/ana/train.log", 812, "[rank3]: torch.OutOfMemoryError: CUDA out of memory.", "gpu",
        fields={"gpu": "3", "tried_bytes": 2 * G, "free_bytes": G, "total_bytes": 40 * G}, repeats=7,
    )  # fmt: skip
    crash = Crash("oom", "gpu", "actor_update", "torch-oom", (cause,), lines_read=900)
    told = replace(
        state.diagnosis, cause="update-peak", title="the actor update does not fit beside the engine", memory="gpu",
        remarks=("It asked for 2.00 GiB with 1.00 GiB free.",), path=path()[1:],
    )  # fmt: skip
    return replace(state, crash=crash, diagnosis=told)


def no_log(script: bool = True) -> State:
    """Nothing crashed, or nobody gave a log."""
    state = host_crash()
    asked = SessionRequest(script=Path("/home/ana/run.sh") if script else None)
    crash = Crash("unclear", "unknown", "unknown", unclear_because="no log was given")
    told = replace(state.diagnosis, path=(), remarks=(), cases=(), ruled_out=(), title="nothing to explain")
    return replace(state, asked=asked, crash=crash, diagnosis=told, script=Script((), ()) if script else None)


DIFF = """\
--- run.sh
+++ run.fits.sh
@@ -7,3 +7,5 @@
     data.train_files=[a, b] \\
     worker.actor.model.model_path=${MODEL_PATH} \\
-    trainer.n_gpus_per_node=8
+    trainer.n_gpus_per_node=8 \\
+    worker.actor.offload.offload_optimizer=false \\
+    worker.actor.offload.offload_params=false
"""


@dataclass
class MadeDriver:
    """Answers from the hand-built states; records what it was asked."""

    state: State = field(default_factory=host_crash)
    calls: list[str] = field(default_factory=list)
    trouble: Exception | None = None
    folder: Path = Path("/home/ana")
    early: State | None = None
    """What the end of the log proves."""
    rest: threading.Event = field(default_factory=threading.Event)
    """Set when the rest of the log has been read."""

    def ends(self) -> Crash | None:
        """What the early State was made of."""
        return self.early.crash if self.early is not None else None

    def open(
        self, notice: Callable[[str], None], early: Callable[[State], None] | None = None, ends: Crash | None = None
    ) -> State:
        """Give the state, or the trouble."""
        notice("reading train.log, 212 MB")
        if self.trouble is not None:
            raise self.trouble
        if self.early is not None and early is not None:
            early(self.early)
            notice("reading train.log: 12% of 10.0 GiB")
            self.rest.wait(20)
        return self.state

    def carry_over(self, before: State, now: State) -> State:
        """The same answers, given again."""
        self.calls.append("carry over")
        for question, choice in before.answers.items():
            now = self.answer(now, question, choice)
        return now

    def answer(self, state: State, question: str, choice: str | None) -> State:
        """The first question's answer decides the cause."""
        self.calls.append(f"answer {question} {choice}")
        if question != "memory":
            told = tuple(
                replace(one, answer=choice or UNKNOWN, source="user" if choice else "unknown")
                if one.question == question
                else one
                for one in state.diagnosis.path
            )
            return replace(state, diagnosis=replace(state.diagnosis, path=told))
        return replace(state, diagnosis=diagnosis(choice or "host"))

    def toggle(self, state: State, step_id: str) -> State:
        """Switch, and compute the ledger again; what conflicts goes off."""
        self.calls.append(f"toggle {step_id}")
        asked = next(one for one in state.plan.steps if one.id == step_id)
        on = not asked.selected
        switched = tuple(
            replace(one, selected=on)
            if one.id == step_id
            else replace(one, selected=one.selected and not (on and one.id in asked.conflicts))
            for one in state.plan.steps
        )
        return state.with_plan(plan_of(switched))

    def chosen_set(self, state: State) -> ChosenSet:
        """What is on."""
        return ChosenSet(tuple(one.id for one in state.plan.selected()))

    def proposed_set(self, _: State) -> ChosenSet:
        """The first two."""
        return ChosenSet(("optimizer-offload-off", "param-offload-off"))

    def with_set(self, state: State, chosen: ChosenSet) -> State:
        """Exactly these on."""
        return state.with_plan(plan_of(tuple(replace(s, selected=s.id in chosen.steps) for s in state.plan.steps)))

    def page(self, state: State) -> str:
        """A page."""
        return page_report(state, self.preview(state).diff)

    def preview(self, state: State) -> Preview:
        """The diff of the sketch."""
        self.calls.append("preview")
        if not state.plan.selected() or state.asked.script is None:
            return Preview("")
        proof = ("read back equal to the plan", "nothing else moved", "bash -n clean", "mode 755")
        return Preview(DIFF, proof, self.folder / "run.fits.sh")

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write a few bytes for real, so that overwriting can be tested."""
        self.calls.append(f"save {destination.name} {force}")
        if destination.exists() and not force:
            raise FileExistsError(str(destination))
        destination.write_text("fits\n")
        return Saved(destination, destination.with_suffix(".md"), f"bash {destination.name}")


@dataclass
class MadeGauges:
    """The same snapshot at every poll."""

    gpus: int = 8
    polled: int = 0

    def poll(self, now: float) -> GaugeSnapshot:
        """Eight cards."""
        self.polled += 1
        return snapshot(self.gpus, now)
