"""Reads and measures what a session is asked for: script, log, machine."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, no_log
from advisor.crash.kept import SAID_IN
from advisor.crash.log_facts import pinned_versions, project_in
from advisor.crash.read import read_logs, read_text
from advisor.demo import is_bundled
from advisor.hostile import clean, clean_line
from advisor.knowledge import Knowledge, load_knowledge
from advisor.knowledge.schema import Framework
from advisor.language import listed, say
from advisor.machine.batch import batch_memory, visible, with_cards, within
from advisor.machine.describe import as_many, beside_others, described, from_log, merge
from advisor.machine.gpu_spec import cards_told, size_of
from advisor.machine.inventory import BatchMemory, Machine
from advisor.machine.measure import PATIENCE, measure
from advisor.machine.ray_session import end_of
from advisor.run.dialect import Recognised, recognise
from advisor.run.natives import agreement, native, same_text
from advisor.run.run import Knob
from advisor.run.seen_launch import cards_counted, cards_seen
from advisor.run.shape import is_name
from advisor.run.topology import cards_of, visible_cards
from advisor.script.document import COMMENT, Setting
from advisor.script.files import text_of
from advisor.script.kept_changes import values_before
from advisor.script.launch import Launch, Script
from advisor.script.reader import follow_module, printed_launch, read_script, with_trainers
from advisor.units import show_bytes
from advisor.watch.system_logs import ends_in, of_workers, raylets_on, worker_ids

_LONG = 32 << 20
"""Bytes of a log from which on it is told how far its reading is."""
MOST_SAID = 4_000
"""Characters that are read of what a person says in the place of a name."""

OnProgress = Callable[[str], None]
"""Told what is being read, for progress."""


class SessionRequest(Struct, frozen=True):
    """What the user gave on the command line, or later in the app."""

    script: Path | None = None
    logs: tuple[Path, ...] = ()
    gpus: str | None = None
    """"8xA100-40GB"."""
    nodes: int | None = None
    host_ram: str | None = None
    shm: str | None = None
    libraries: tuple[str, ...] = ()
    """"deepspeed=0.16.3"."""
    was: tuple[str, ...] = ()
    """Versions with which the same run fitted, "trl=0.24"."""
    machine_files: tuple[Path, ...] = ()
    model: str | None = None
    launch: int | None = None
    """0-based; None: the first launch that a dialect knows, else the first."""
    max_row: str | None = None
    """Tokens of the longest row of the data; "cap": every row is as long as the settings let it be."""
    margin: float = 0.08
    """Fraction of every capacity to be left free."""
    answers: Mapping[str, str] | None = None
    framework_named: str = ""
    """What the user calls a framework that no dialect describes."""
    accept: str = "recommended"
    """recommended, same-results, or step ids separated by commas."""
    knowledge: tuple[Path, ...] = ()
    """Folders of the user's own knowledge, later ones over earlier ones."""
    record: Path | None = None
    """What `watch` recorded of the run; its logs are read before those given."""
    ray: str | None = None
    """Address of a running Ray cluster to be asked ("auto": the one of this node)."""
    planned: bool = True
    """False: no changes are sought, for what asks of the run as it is."""
    cards_named: bool = False
    """Whether `gpus` has to name cards: what counts and writes needs them, a death is told without."""

    @property
    def knobs(self) -> dict[str, Knob]:
        """What the user says of the run beside its settings."""
        if self.max_row is None:
            return {}
        value = int(self.max_row) if self.max_row.isdecimal() else self.max_row
        return {"data.longest_row": Knob("data.longest_row", value, "user")}

    @property
    def model_name(self) -> str | None:
        """What `model` names; None where it is not given, or is what a person says of the run."""
        return self.model if self.model and is_name(self.model, load_knowledge().models) else None

    @property
    def words(self) -> str:
        """What a person says of the run where a model's name was asked for; "" where that is a name."""
        return "" if self.model is None or self.model_name else clean(self.model, MOST_SAID)


def silent(_: str) -> None:
    return


def read_crash(logs: Sequence[Path], knowledge: Knowledge, tell: OnProgress, words: str = "") -> Crash:
    if not logs:
        return read_text(words, SAID_IN, knowledge.signatures, *knowledge.phase_marks()) if words else no_log()
    for log in logs:
        size = show_bytes(log.stat().st_size) if log.is_file() else ""
        tell(say("reading {file}, {size}", file=log.name, size=size) if size else say("reading {file}", file=log.name))
    shown = -1

    def at(name: str, read: int, size: int | None) -> None:
        nonlocal shown
        if size and size >= _LONG and shown != (percent := min(read * 100 // size, 100)):
            shown = percent
            told = {"file": Path(name).name, "percent": percent, "size": show_bytes(size)}
            tell(say("reading {file}: {percent}% of {size}", **told))

    return read_logs(logs, knowledge.signatures, *knowledge.phase_marks(), at, words)


def read_crash_of(asked: SessionRequest, knowledge: Knowledge, tell: OnProgress, ends: Crash | None = None) -> Crash:
    """What the logs prove; where they leave it open, Ray's own logs too: those in the record, or of the dead worker.
    `ends`: what their ends prove; where these are all of them, they are not read again."""
    whole = ends is not None and not ends.preliminary and not asked.words
    crash = ends if ends is not None and whole else read_crash(asked.logs, knowledge, tell, asked.words)
    if crash.verdict != "unclear":
        return crash
    more = ends_in(asked.record) if asked.record is not None else ()
    texts = [entry.text for entry in crash.evidence] + [
        clean(end_of(log), 200_000) for log in asked.logs if log.is_file()
    ]
    more = more or _ends_here(texts) or _ends_elsewhere(asked.ray, worker_ids(texts))
    if not more:
        return crash
    fuller = read_crash((*asked.logs, *more), knowledge, tell, asked.words)
    return fuller if fuller.verdict != "unclear" or not crash.evidence else crash


def _ends_here(texts: Sequence[str]) -> tuple[Path, ...]:
    """The logs of dead workers of this node, and what their raylets wrote of them."""
    found = of_workers(texts)
    told = raylets_on(texts) if worker_ids(texts) else ""
    return (*found, *_kept_aside({"raylet.out": told})) if told else found


def _kept_aside(texts: Mapping[str, str]) -> tuple[Path, ...]:
    """File name → text, written to a temporary folder, where the app can show them."""
    from tempfile import mkdtemp

    folder = Path(mkdtemp(prefix="rl-oom-advisor-ray-"))
    for name, text in texts.items():
        (folder / name.replace("/", "_")).write_text(text, encoding="utf-8", errors="replace")
    return tuple(sorted(folder.iterdir()))


def _ends_elsewhere(address: str | None, workers: tuple[str, ...]) -> tuple[Path, ...]:
    """The logs of dead workers on other nodes of a cluster that runs, fetched through Ray into the temporary folder."""
    if address is None or not workers:
        return ()
    from advisor.machine.cluster import ask_cluster

    logs = ask_cluster(address, workers=workers).logs
    return _kept_aside({f"{node} {name}": text for node, name, text in logs}) if logs else ()


def stated_libraries(asked: SessionRequest, knowledge: Knowledge) -> Mapping[str, str]:
    """Versions the user named, for choosing the launch before the machine is measured."""
    return described(knowledge.gpus, libraries=asked.libraries).libraries


def launch_of(script: Script | None, index: int, crash: Crash) -> Launch | None:
    """The launch asked about: the script's, else the one that the log prints, else what a name hints at."""
    if script is not None and script.launches:
        return script.launches[index]
    place = script.documents[0].path.name if script is not None else ""
    return _logged_launch(crash, place) or (script.hinted if script is not None else None) or _described_launch(crash)


def _described_launch(crash: Crash) -> Launch | None:
    """The launch of which a person names settings; None where they name none, or the log prints what ran."""
    if not crash.described or crash.settings:
        return None
    told = crash.described.items()
    settings = tuple(Setting(key, text, "command", True) for key, text in told if not key.startswith("$"))
    variables = {key[1:]: text for key, text in told if key.startswith("$")}
    return Launch(0, "", (), variables, settings, launcher_unread=("",), partial=True, prose=crash.prose)


def prose_of(launch: Launch | None, crash: Crash) -> tuple[str, ...]:
    """The words that a person wrote, in the place of a launch or of a log."""
    return tuple(dict.fromkeys((*(launch.prose if launch is not None else ()), *crash.prose)))


def _logged_launch(crash: Crash, place: str = "") -> Launch | None:
    """The launch that the log prints, for a run whose script was not given; None where it prints none. `place`: the
    file that was given as a script, and starts nothing."""
    command = crash.command
    if command is None:
        return None
    starter = ("deepspeed" if "launch.py" in command.line.printed else "torch.distributed.launch") * command.ranked
    launch = printed_launch(command.text, starter, command.whole)
    if launch is None:
        return None
    told = say(
        "No script that starts the training was given: the command is read from line {line} of the log.",
        line=command.line.number,
    )
    if place:
        told = say("{file} is no script: the command is read from what is printed in it.", file=place)
    if launch.not_found:
        files = listed(one.file for one in launch.not_found)
        told += " " + say(
            "No file that a log names is opened. Write that command into a file beside {files} and give it, too: "
            "rl-oom-advisor FILE --log {log}",
            files=files,
            log=shlex.quote(crash.evidence[0].file) if crash.evidence else "LOG",
        )
    return replace(launch, notes=(told, *launch.notes))


def pick_launch(
    script: Script | None, crash: Crash, asked: SessionRequest, knowledge: Knowledge, libraries: Mapping[str, str]
) -> tuple[Recognised, int]:
    """The launch asked for; else, of those a dialect knows, the one the log agrees with best; else the first. Where no
    script has one, it is the log's that is recognised."""
    launches = script.launches if script is not None else ()
    if asked.launch is not None and not 0 <= asked.launch < len(launches):
        asked_for = {"number": asked.launch + 1, "file": asked.script, "count": len(launches)}
        raise ValueError(say("there is no launch {number}; {file} has {count}", **asked_for))
    order = range(len(launches)) if asked.launch is None else [asked.launch]
    text = script.text if script is not None else ""
    text += crash.command.text if crash.command is not None and not launches else ""
    project = crash.project or project_in(text, knowledge.signatures.projects)
    merged = {**pinned_in(script, knowledge), **crash.traced, **crash.libraries, **libraries}
    stated = {*crash.libraries, *stated_libraries(asked, knowledge)}
    paths = [frame.file for frame in crash.frames]
    file = script.documents[0].path if script is not None else None
    same = (crash.frameworks, crash.settings, merged, knowledge.frameworks, paths, file, stated, crash.dated)

    def told(launch: Launch | None) -> Recognised:
        return recognise(launch, text, *same, prose_of(launch, crash), project)

    known = [(told(launches[index]), index) for index in order] if launches else []
    known = [(recognised, index) for recognised, index in known if recognised.framework is not None]
    if known:
        return max(known, key=lambda one: (agreement(launches[one[1]], crash.settings), -one[1]))
    index = order[0] if launches else 0
    return told(launch_of(script, index, crash)), index


def read_launches(path: Path, knowledge: Knowledge) -> Script:
    """`read_script`, with the trainers that the launches' Python files build. Raises ScriptError."""
    return with_trainers(read_script(path), classes_known(knowledge.frameworks))


def classes_known(dialects: Sequence[Framework]) -> frozenset[str]:
    """Patterns of the classes by which dialects know a Python file."""
    return frozenset(base for dialect in dialects for mark in dialect.recognised_by for base in mark.python_bases)


def config_module(script: Script | None, index: int, recognised: Recognised, knowledge: Knowledge) -> Script | None:
    """The Python file that the launch runs, where a dialect knows its settings by the classes that hold them."""
    if script is None:
        return None
    named = [recognised.framework] if recognised.framework is not None else []
    found = follow_module(script, index, classes_known(named) if named else ("",))
    if found is None:
        return None
    shell, file = script.documents[0].path, found.documents[0].path
    names = {"script": clean_line(str(shell)), "file": clean_line(str(file))}
    note = say("{script} runs {file}: that file has the settings and is the one to change.", **names)
    return replace(found, launches=tuple(replace(each, notes=(note, *each.notes)) for each in found.launches))


def machine_for(
    asked: SessionRequest,
    knowledge: Knowledge,
    crash: Crash,
    script: Script | None,
    index: int,
    tell: OnProgress = silent,
) -> Machine:
    launch = script.launches[index] if script is not None and script.launches else None
    printed = crash.evidence[0].fields.get("node_total_bytes") if crash.evidence else None
    host = printed if isinstance(printed, int) else None
    signatures = knowledge.signatures.signatures
    of_job = any(one.id == crash.signature and one.limit == "job" for one in signatures)
    interpreter = launch.interpreter if launch is not None else None
    chosen = visible_cards(launch) if launch is not None else None
    seen = max(cards_seen(crash.counts), chosen or 1)
    patience = PATIENCE / 3 if asked.gpus else PATIENCE
    here = Machine() if is_bundled(asked.script) else measure(interpreter, patience=patience)  # nobody's is the demo's
    machine = merge(
        visible(here, {**os.environ, **(launch.environment if launch is not None else {})}),
        described_machine(asked, knowledge, tell),
        from_log(
            gpu_bytes=crash.gpu_total_bytes or next((size_of(one, knowledge.gpus) for one in crash.gpu_names), None),
            gpu_names=crash.gpu_names,
            gpu_count=cards_counted(crash.counts) or chosen,
            gpus_seen=seen,
            nodes=crash.counts.get("nodes"),
            host_bytes=host if host is not None and not of_job else crash.host_total_bytes,
            host_limit=(host or crash.counts.get("job_ram")) if of_job else None,
            libraries={**crash.traced, **crash.libraries},
        ),
        knowledge.gpus,
    )
    machine = dataclasses.replace(machine, libraries={**pinned_in(script, knowledge), **machine.libraries})
    if asked.gpus is not None and len(machine.gpus) == 1 and not cards_told(asked.gpus, knowledge.gpus).counted:
        launched = cards_of(launch, launch.processes) if launch is not None else None
        machine = as_many(machine, cards_counted(crash.counts) or (launched.per_node if launched else seen))
    if script is not None and script.documents and script.documents[0].kind == "shell":
        machine = with_cards(machine, script.documents[0].data.decode(errors="replace"), knowledge.gpus)
    limit = asked_of_slurm(script)
    machine = within(machine, limit) if limit is not None else machine
    return beside_others(machine, here, not (asked.logs or asked.words or asked.record))


def pinned_in(script: Script | None, knowledge: Knowledge) -> dict[str, str]:
    """Versions of libraries by the script's own words, and by the requirements beside it."""
    words, documents = knowledge.signatures.statements, script.documents if script is not None else ()
    required = sorted(documents[0].path.parent.glob("requirements*.txt"))[:4] if documents else []
    own = [one.data.decode(errors="replace") for one in documents if one.kind in ("shell", "python")]
    text = clean("\n".join([*map(text_of, required), *own]), MOST_SAID * 100)
    return pinned_versions(text, words.libraries) if words is not None else {}


def asked_of_slurm(script: Script | None) -> BatchMemory | None:
    """The RAM of a node that the script asks of Slurm, or under which it starts the run; None where it says none."""
    for number, one in enumerate(script.documents if script is not None else ()):
        found = batch_memory(one.data.decode(errors="replace"), one.path.name) if one.kind == "shell" else None
        if found is not None:
            return found if number == 0 else dataclasses.replace(found, is_editable=False)
    return None


def described_machine(asked: SessionRequest, knowledge: Knowledge, tell: OnProgress = silent) -> Machine:
    """What the command line says of the machine, and the cluster that it names."""
    nodes, problems = _cluster(asked.ray, tell)
    return described(
        knowledge.gpus,
        gpus=asked.gpus,
        nodes=asked.nodes,
        host_ram=asked.host_ram,
        shm=asked.shm,
        libraries=asked.libraries,
        machine_files=asked.machine_files,
        asked=nodes,
        problems=problems,
        named=asked.cards_named,
    )


def _cluster(address: str | None, tell: OnProgress) -> tuple[Sequence[Machine], Sequence[str]]:
    """Nodes of the Ray cluster that was named, and sentences on those that did not answer."""
    if address is None:
        return (), ()
    from advisor.machine.cluster import ask_cluster

    def heard(answered: int, count: int) -> None:
        tell(say("asking the Ray cluster: {answered} of {count} nodes have answered", answered=answered, count=count))

    tell(say("asking the Ray cluster"))
    answers = ask_cluster(address, heard=heard)
    return answers.nodes, answers.problems


SAME_LIMIT = 0.02
"""Part of a limit by which Slurm's own figure of it may differ (rounding to pages and MB)."""


class Earlier(Struct, frozen=True):
    """The script as it was when the log was written."""

    overrides: Mapping[str, str | None]
    """Native key (`$NAME` for a variable) → its text then; {}: as it is now."""
    said: str = ""


def earlier_run(
    logs: Sequence[Path], script: Script | None, launch: Launch | None, crash: Crash, known: Recognised
) -> Earlier:
    """The settings that the log's run had and this script no longer has, with a sentence on them. Either the log prints
    other values, or `fix` or `set` changed a file of the script after the log was written."""
    if script is None or launch is None or not logs or not crash.evidence or known.framework is None:
        return Earlier({})
    facts, printed = known.framework.settings, {native(key): text for key, text in crash.settings.items()}
    now = {native(setting.key): setting.text for setting in launch.effective().values() if setting.resolved}
    then: dict[str, str | None] = {
        key: printed[key]
        for key, text in now.items()
        if key in facts and facts[key].knob is not None and key in printed and not same_text(text, printed[key])
    }
    for key, old in values_before(script.documents, logs).items():
        name = f"${key}" if key in known.framework.environment else native(key)
        ours = name in facts or name[1:] in known.framework.environment
        if ours and (old is None or name not in now or not same_text(now[name], old)):
            then.setdefault(name, old)
    if not then:
        return Earlier({})
    key, text = next(iter(then.items()))
    unset = say("what is not set")
    said = say(
        "The log is of another run than this script's: it had {key} = {then}, here it is {now}. What the log shows "
        "counts for the run as it was, and is carried over to the script as it is.",
        key=clean_line(key, 80),
        then=unset if text is None else clean_line(text, 40),
        now=clean_line(now.get(key, unset), 40),
    )
    return Earlier(then, said)


def _was_written_after(script: Path, logs: Sequence[Path]) -> bool:
    written, logged = ([f.stat().st_mtime for f in files if f.is_file()] for files in ([script], logs))
    return bool(written and logged) and written[0] > max(logged)


def limit_before(logs: Sequence[Path], script: Script | None, asked: BatchMemory | None, crash: Crash) -> str:
    """That a job which its limit ended may have had another one than the script asks for now; "" where nothing says so.
    The log prints the limit, or the script was written after the log."""
    if asked is None or script is None or not crash.evidence:
        return ""
    told = {"option": f"{asked.option}={asked.text}", "place": f"{asked.file}:{asked.line}"}
    printed = crash.evidence[0].fields.get("node_total_bytes")
    if isinstance(printed, int):
        if abs(printed - asked.limit_bytes) <= SAME_LIMIT * asked.limit_bytes:
            return ""
        return say(
            "The log is of a run with another limit: its job was ended at {then}, here it is {option} ({place}).",
            then=show_bytes(printed),
            **told,
        )
    shell = next((one.path for one in script.documents if one.kind == "shell"), None)
    if shell is None or not _was_written_after(shell, logs):
        return ""
    return say(
        "The script was written after the log: that the job was ended at {option} ({place}) is not known. If it asked "
        "for less then, the log says nothing against the limit that stands there now.",
        **told,
    )


def notes_on(
    asked: SessionRequest, script: Script | None, index: int, knowledge: Knowledge, crash: Crash
) -> Iterator[str]:
    """What is to be said of what was given, before anything of the run."""
    traced = [f"{name} {version}" for name, version in crash.traced.items() if name not in crash.libraries]
    if traced:
        yield say("The lines of the traceback are those of {versions}.", versions=listed(traced))
    elsewhere = {**crash.traced, **crash.libraries, **stated_libraries(asked, knowledge)}
    if pinned := [f"{name} {at}" for name, at in pinned_in(script, knowledge).items() if name not in elsewhere]:
        yield say("By the script, or the requirements beside it: {versions}.", versions=listed(pinned))
    yield from (say("Left out of your knowledge: {reason}", reason=sentence) for sentence in knowledge.refused)
    if asked.words:
        yield say(
            "“{words}” is no model's name: it is read as what you say of the run (--model takes a name).",
            words=clean_line(asked.words, 60),
        )
    documents = script.documents if script is not None else ()
    if not (asked.logs or asked.record) and any(COMMENT.encode() in one.data for one in documents):
        yield say(
            "A fix wrote into this script: with the log of the crash (--log), what that measured counts as there."
        )
    if others := _other_launches(asked, script, index):
        yield others


def _other_launches(asked: SessionRequest, script: Script | None, index: int) -> str:
    """Which of several training commands is looked at, where nobody chose; "" where there is no choice."""
    if script is None or len(script.launches) < 2 or asked.launch is not None:
        return ""
    span = script.launches[index].span
    told = {"count": len(script.launches), "number": index + 1}
    if span is None:
        return say(
            "The script has {count} training commands; this is number {number}, the first. --launch N chooses another.",
            **told,
        )
    return say(
        "The script has {count} training commands; this is number {number}, the one in line {line}. "
        "--launch N chooses another.",
        **told,
        line=span.line,
    )
