"""Words facts about the run and the machine that several screens show."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from advisor.language import Sayings, say
from advisor.machine.inventory import Machine
from advisor.regex import regex
from advisor.report.phrases import cards
from advisor.run.run import Run
from advisor.script.document import Setting
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.state import State

_SIZED = regex(r"\d ?GB\b")
_DECIDED_BY = Sayings({"default": "framework default", "log": "read in the log", "environment": "environment"})


def size(count: int | None) -> str:
    """Whole GiB from ten on; "?" for None."""
    if count is None:
        return "?"
    return f"{count / GIB:.0f} GiB" if count >= 10 * GIB else f"{count / GIB:.1f} GiB"


def short_name(path: str) -> str:
    """A file's last two parts: enough to know it, short enough for a line."""
    parts = PurePath(path).parts
    return "/".join(parts[-2:]) if len(parts) > 2 else path


def where(setting: Setting) -> str:
    """Like "vl.yaml:21", or in words where no file of the user's decides it."""
    if setting.span is not None:
        return f"{short_name(setting.span.path)}:{setting.span.line}"
    return _DECIDED_BY.get(setting.origin) or say("from other settings")


def gpu_words(machine: Machine, asked: int | None = None) -> str:
    """Like "8 × A100 40 GiB", with the nodes; "no GPU known". A name that ends in a size needs no second one.

    `asked`: GPUs of a node that the launch asks for, told where nobody counted them.
    """
    if not machine.gpus:
        return cards(machine, asked)
    name, each = machine.usable[0].name.removeprefix("NVIDIA "), size(machine.gpu_bytes)
    told = cards(machine, asked, name if _SIZED.search(name) else f"{name} {each}", each)
    nodes = machine.nodes or 1
    return say("{nodes} nodes, each {cards}", nodes=nodes, cards=told) if nodes > 1 and not machine.more_gpus else told


def host_words(machine: Machine) -> str:
    """Like "760 GiB RAM, no container limit"."""
    host = machine.host
    if host.total_bytes is None and host.limit_bytes is None:
        return say("host RAM unknown")
    ram = say("{size} RAM", size=size(host.total_bytes)) if host.total_bytes is not None else say("RAM unknown")
    if host.limit_bytes is None:
        measured = machine.sources.get("host.total") == "measured"  # where nobody looked, there may be one
        return say("{ram}, no container limit", ram=ram) if measured else ram
    limited = {"ram": ram, "size": size(host.limit_bytes)}
    if machine.sources.get("host.limit") == "script":
        return say("{ram}, limited to {size} by {source}", **limited, source=host.limit_source)
    return say("{ram}, limited to {size}", **limited)


def library_words(machine: Machine, run: Run) -> list[str]:
    """`torch 2.5.1`, `ray 2.40.0`: those that decide memory, most telling first."""
    known = {**machine.libraries, **run.libraries}
    order = [name for name in ("torch", "vllm", "sglang", "deepspeed", "ray", "transformers") if name in known]
    return [f"{name} {known[name]}" for name in order[:4]]


def deciding_settings(state: State, most: int) -> list[Setting]:
    """Settings in force that the plan would change, then those that carry a knob of memory."""
    in_force = {setting.key: setting for setting in state.run.settings if setting.effective}
    planned = [change.key for step in state.plan.steps for change in step.changes]
    carried = [knob.key for knob in state.run.knobs.values() if knob.key and knob.source != "default"]
    keys = dict.fromkeys([*planned, *carried])
    return [in_force[key] for key in keys if key in in_force][:most]


def doubts_of_sums(state: State) -> list[str]:
    """What sums and log say against each other, but for what a missing file leaves in doubt."""
    return [doubt for doubt in state.ledger.doubts if doubt not in state.run.doubts]


def briefly(state: State, text: str) -> str:
    """A sentence with the files that everybody on this screen knows named without their folders."""
    for path in (*state.asked.logs, state.asked.script):
        if path is not None and path.name:
            text = text.replace(str(path), path.name)
    return text
