"""By hand: walk the tree for a folder of labelled crashes and print a table.

    python -m tests.diagnosis.walk_cases FOLDER [--markdown] [--causes FILE]

Each case is a YAML file with `log`, `script`, `facts` and `labels` (is_oom, memory, phase). A case is opened as a user
would open it; every question that neither log, script nor machine answers is asked. The one who answers knows what the
label says of memory and phase, and so whether a traceback or a kill was seen; nothing else. Printed: questions asked,
questions on the path, the cause, and whether the label allows it. The question about the framework's version, which
serves the plan and not the cause, is counted on its own.

--causes: YAML, case id → {cause, because, answers: {question: answer}}: the one cause that a reader of the whole report
names, and what the report tells beside memory and phase. Then that cause is what has to be reached.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from advisor import session
from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.session import SessionRequest, State
from tests.replacing import replace

ROUNDS = 9
VERSION = "version"
BATCH = {
    "logits-too-big",
    "batch-too-big",
    "long-sequence",
    "fragmentation",
    "library-regression",
    "gpu-growth",
    "encoder-cache",
}
STATES = {"states-too-big", "lazy-optimizer"}
ENGINE = {"engine-beside-trainer", "engine-wakes-beside-states", "leftover-processes", "judge-on-card"}
START = {
    "no-room-for-kv",
    "card-already-taken",
    "engine-start-too-big",
    "leftover-processes",
    "judge-on-card",
    "wrong-device",
}
HOST = {
    "offload-fills-host", "engine-copies", "object-store", "image-cache", "host-library-leak", "host-growth",
    "host-limit", "host-too-small",
}  # fmt: skip
ALLOWED: dict[str, dict[str, set[str]]] = {
    "gpu": {
        "model_load": STATES | {"wrong-device"},
        "rollout_init": START,
        "rollout_generate": ENGINE | {"library-regression"},
        "weight_sync": ENGINE | {"weight-gather", "library-regression"},
        "log_prob": BATCH | STATES | ENGINE,
        "actor_update": BATCH | STATES | ENGINE,
        "critic_update": BATCH | STATES | ENGINE,
        "optimizer_step": STATES,
        "checkpoint": {"checkpoint-gather", "merge-beside-training"},
        "validation": ENGINE | BATCH | STATES | {"validation-batch", "evaluation-too-big"},
        "unknown": BATCH | STATES | ENGINE | START | {"weight-gather"},
    },
    "host": {
        "model_load": HOST | {"loading-per-rank"},
        "checkpoint": HOST | {"checkpoint-in-ram"},
        "validation": HOST | {"validation-batch"},
        "unknown": HOST | {"loading-per-rank", "checkpoint-in-ram", "validation-batch"},
    },
    "shm": {"unknown": {"shm-too-small", "object-store"}},
    "none": {"unknown": {"not-memory"}},
    "unknown": {"unknown": {"unclear", "not-memory"} | HOST | BATCH | STATES},
}
"""Memory and phase of the label → causes that it allows."""


@dataclass(frozen=True, slots=True)
class Walked:
    """One case: what was asked, and where it ended."""

    name: str
    asked: int
    path: int
    cause: str
    label: str
    agrees: bool
    expected: str = ""
    version_asked: bool = False


def described(facts: dict[str, Any]) -> dict[str, Any]:
    """What the case says of its machine, as the command line takes it."""
    found: dict[str, Any] = {}
    cards = re.search(r"(\d+)\s*x\s*([A-Za-z][\w ]*?)\s*(\d+)\s*GB", str(facts.get("gpus") or ""))
    if cards:
        found["gpus"] = f"{cards[1]}x{cards[2].strip().replace(' ', '-')}-{cards[3]}GB"
    if re.match(r"[\d.]+\s*[GT]i?B", str(facts.get("host_ram") or "")):
        found["host_ram"] = str(facts["host_ram"]).replace(" ", "")
    versions = facts.get("versions") or {}
    if re.search(r"\d", str(facts.get("model") or "")):
        found["model"] = re.split(r"[ ,]", str(facts["model"]))[0]
    found["libraries"] = tuple(f"{k}={v}" for k, v in versions.items() if re.match(r"\d", str(v)))
    return found


def opened(case: dict[str, Any], folder: Path) -> State:
    """The case as a user opens it."""
    asked = SessionRequest(**described(case.get("facts") or {}))
    if case.get("script"):
        text = case["script"]
        python = re.search(r"^\s*\w+: \w+.* = ", text, re.MULTILINE)
        script = folder / ("run.py" if python else "run.yaml" if re.match(r"\s*[\w.]+:(\s|$)", text) else "run.sh")
        script.write_text(text)
        asked = replace(asked, script=script)
    if case.get("log"):
        log = folder / "crash.log"
        log.write_text(case["log"])
        asked = replace(asked, logs=(log,))
    return session.open_session(asked)


def known_to(labels: dict[str, Any], question: str, told: dict[str, str]) -> str:
    """The answer of somebody who has the whole report before him."""
    if question in told:
        return told[question]
    memory = str(labels.get("memory"))
    if question in ("seen", "ended"):
        return {"gpu": "raised", "host": "killed", "shm": "bus", "none": "other"}.get(memory, UNKNOWN)
    return str(labels.get(question)) if question in ("memory", "phase") else UNKNOWN


def walked(case: dict[str, Any], folder: Path, read: dict[str, Any]) -> Walked:
    """Answer each open question once, memory and phase as the label has them, everything else with "I don't know"."""
    labels = case["labels"]
    answers = {str(name): str(answer) for name, answer in (read.get("answers") or {}).items()}
    state = opened(case, folder)
    told: dict[str, str] = {}
    for _ in range(ROUNDS):
        open_steps = [step for step in state.diagnosis.path if step.source == "unknown" and step.question not in told]
        if not open_steps:
            break
        step = open_steps[0]
        known = known_to(labels, step.question, answers)
        told[step.question] = known if known in {choice.id for choice in step.choices} else UNKNOWN
        state = session.answer(state, step.question, told[step.question])
    memory, phase = str(labels.get("memory") or "unknown"), str(labels.get("phase") or "unknown")
    by_phase = ALLOWED[memory]
    cause, path = state.diagnosis.cause, state.diagnosis.path
    expected = str(read.get("cause") or "")
    agrees = cause == expected if expected else cause in by_phase.get(phase, by_phase["unknown"])
    asked, steps = [name for name in told if name != VERSION], [step for step in path if step.question != VERSION]
    return Walked(
        str(case["id"]), len(asked), len(steps), cause, f"{memory} {phase}", agrees, expected, VERSION in told
    )


def main() -> None:
    """Print the table and its sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--causes", type=Path)
    parsed = parser.parse_args()
    read = yaml.safe_load(parsed.causes.read_text()) if parsed.causes else {}
    rows: list[Walked] = []
    for file in sorted(parsed.folder.glob("*.yaml")):
        with tempfile.TemporaryDirectory() as scratch:
            case = yaml.safe_load(file.read_text())
            rows.append(walked(case, Path(scratch), read.get(case["id"]) or {}))
    line = "| {} | {} | {} | {} | {} | {} | {} |" if parsed.markdown else "{:44} {:>5} {:>4} {:28} {:28} {:24} {}"
    print(line.format("case", "asked", "path", "cause", "expected", "label", "agrees"))
    if parsed.markdown:
        print("|---|---:|---:|---|---|---|---|")
    for row in rows:
        said = "yes" if row.agrees else "NO"
        print(line.format(row.name[:44], row.asked, row.path, row.cause, row.expected, row.label, said))
    right = sum(row.agrees for row in rows)
    longest = max(row.path for row in rows)
    print(
        f"\n{len(rows)} cases; questions asked: median {statistics.median(row.asked for row in rows):g}, "
        f"most {max(row.asked for row in rows)}; longest path {longest}; "
        f"cause as expected: {right}/{len(rows)}; version asked beside them: {sum(row.version_asked for row in rows)}"
    )


if __name__ == "__main__":
    main()
