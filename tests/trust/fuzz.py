"""Throw damaged input at everything that reads what strangers wrote.

    python -m tests.trust.fuzz 100000 [SEED]        (so many executions of each target, weighted)

A target may refuse in the one way its docstring names; anything else that is raised is a fault, as is an answer that
takes longer than a second of processor time (a sitting, as a run file is one: five; undamaged ones take 0.3 to 0.5 s
where two cores are shared by eight). Faults are printed with the input that caused them. A short run is
part of the tests.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advisor import language, session, session_store
from advisor.config import choices_in_force, read_config
from advisor.crash.read import read_text
from advisor.crash.snapshot import RefusedPickleError, plain_data
from advisor.crash.sources import LogError
from advisor.hostile import cells, clean, clean_line
from advisor.knowledge import load_knowledge
from advisor.knowledge.own import merged
from advisor.redact import redact
from advisor.report.json_report import diagnose_json, encode
from advisor.report.short_report import short_report
from advisor.report.text_report import text_report
from advisor.request import SessionRequest
from advisor.run.config_file import read_config as read_model_config
from advisor.run.shape import size_in_name
from advisor.run_file import size_run_file
from advisor.script.document import Document, EditRefused, EditRequest, ScriptError, apply_edits
from advisor.script.edit import rewrite
from advisor.script.files import Files
from advisor.script.reader import read_documents
from advisor.units import parse_size
from advisor.watch.measured import measure_recording
from advisor.watch.record_files import RING, SAMPLES
from advisor.watch.recording import RecordError, read_record
from advisor.words import filled
from tests.machine_file import read_machine_file
from tests.watch.made_record import made_record

RUNS = Path(__file__).parents[1] / "runs"
SLOW = 1.0
"""Seconds of processor time."""
PIECES: tuple[bytes, ...] = (
    *(b'"', b"'", b"$(", b")", b"${", b"}", b"\\\n", b"\n", b"`", b"<<EOF\nEOF\n", b"((", b"#", b";", b"|", b"&&"),
    *(
        b"\x00",
        b"\xff",
        b"\xc2\x9b",
        b"\r\n",
        b"\r",
        b"\t",
        b"\x1b[31m",
        b"\x1b]52;c;AAAA\x07",
        b"\x1b]8;;x\x1b\\",
        b"\x9b",
    ),
    *("\u202e".encode(), "显存不足".encode(), "e\u0301".encode(), b"[/red]", b"[bold]", b"{0}", b"%s", b"{{", b"\x7f"),
    *(b"if ", b"fi\n", b"done\n", b"eval ", b"case x in ", b"${A:-", b"{a,b}", b"source $0\n", b"<<E\n", b"\x01"),
    *(b"A=$A$A\n", b"f(){ f; f; }; f\n", b"while :; do A+=$A; done\n", b". ./run.sh\n", b"${A[@]}", b"$((1<<62**9))"),
    *(
        b"!!python/object/apply:os.system",
        b"&a [*a, *a]",
        b"*a",
        b"<<: *a",
        b"---\n",
        b"|-\n",
        b"? ",
        b"- - - -",
        b"{" * 50,
    ),
    *(b"[" * 300, b'{"a":' * 200, b"1e999", b"-0", b"NaN", b"9" * 400, b"null", b"true", b"0x", b"1_000", b"~"),
    *(
        b"CUDA out of memory. Tried to allocate ",
        b" GiB",
        b"GPU 0 has a total capacity of ",
        b"out of memory",
        b"Killed\n",
    ),
    *(
        b"(WorkerDict pid=1, ip=10.0.0.1) ",
        b"[rank0]: ",
        b"[repeated 7x across cluster]",
        b"Traceback (most recent call last):\n",
    ),
    *(
        b"token=",
        b"hf_" + b"a" * 30,
        b"://a:b@c",
        b"-----BEGIN RSA PRIVATE KEY-----",
        b"\x80\x04\x95",
        b"cos\nsystem\n",
        b"R.",
    ),
)


RINGED = struct.pack("<8sII", b"rlring1\0", 8, 2) + b"".join(struct.pack("<d2q", 1.0 + n, n, -1) for n in range(8))
SITTING = (
    b'{"schema": 1, "asked": {"script": "/a/run.sh", "logs": ["/a/x.log"], "gpus": "8xA100-80GB",'
    b' "answers": {"q": "yes"}},'
    b' "switched": {"micro-batch": false}, "stage": "plan", "question": 2, "demo": false}'
)
RUN_FILE = (
    b"framework: verl\nmodel: Qwen/Qwen2.5-7B\ngpus: 8xA100-80GB\nhost_ram: 760GB\n"
    b"settings:\n  data.train_batch_size: 256\n"
)
VALUE = re.compile(rb'"[^"\n]{0,80}"|-?\b\d{1,20}(?:\.\d+)?\b|\b(?:true|false|null|True|False)\b')
VALUES = (
    *(b"1e999", b"-1", b"NaN", b"null", b"[]", b"{}", b'"x"', b"[[1]]", b"9" * 30, b"true", b"0", b'"\\ud800"'),
    *(b"-0.5", b"1e300", b'{"a": 1}', b'["a", 1, null]', b'""', b"18446744073709551616", b"[" * 2000),
)


@dataclass(frozen=True)
class Target:
    """Something that reads bytes. `refuses`: how it may refuse; `weight`: executions for each of the slowest target."""

    name: str
    run: Callable[[bytes], object]
    seeds: Sequence[bytes]
    refuses: tuple[type[Exception], ...] = ()
    weight: int = 1
    slow: float = SLOW


@dataclass
class Outcome:
    """What a run of all targets came to."""

    executions: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, bytes, str]] = field(default_factory=list)


def damaged(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """One to eight changes: pieces put in, cut out, doubled, spliced from another input, single bytes changed.

    In a third of the cases only whole values are changed, so that what holds them is still read.
    """
    out = bytearray(data[:4000] if chance.random() < 0.9 else data)
    if chance.random() < 0.33 and (places := [found.span() for found in VALUE.finditer(out)]):
        for begin, end in sorted(chance.sample(places, min(len(places), chance.randint(1, 3))), reverse=True):
            out[begin:end] = chance.choice(VALUES)
        return bytes(out)
    for _ in range(chance.randint(1, 8)):
        at, kind = chance.randrange(len(out) + 1), chance.random()
        if kind < 0.4:
            out[at:at] = chance.choice(PIECES) * (1 if chance.random() < 0.9 else chance.randint(2, 40))
        elif kind < 0.6:
            del out[at : at + chance.randint(1, 60)]
        elif kind < 0.75:
            begin = chance.randrange(len(out) + 1)
            out[at:at] = out[begin : begin + chance.randint(1, 300)]
        elif kind < 0.85:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            out[at:at] = other[begin : begin + chance.randint(1, 300)]
        elif out:
            out[min(at, len(out) - 1)] = chance.randrange(256)
    return bytes(out)


def targets(folder: Path) -> list[Target]:
    """Every reader with inputs to begin from. `folder`: for what has to lie in a file."""
    logs = [file.read_bytes()[-6000:] for file in sorted(RUNS.glob("*/*.log"))]
    scripts = [file.read_bytes() for file in sorted(RUNS.glob("*/*.sh"))]
    python = [file.read_bytes() for file in sorted(RUNS.glob("*/*.py"))]
    yamls = [b"model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 8\nvllm: {share: 0.6}\nlist: [1, 2]\n"]
    jsons = [b'{"hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "vocab_size": 152064}']
    machine = [b'{"schema": 1, "gpus": [{"index": 0, "name": "A100", "memory_bytes": 1}], "host": {"total_bytes": 5}}']
    pickles = [
        b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x08segments\x94]\x94s.",
        b"(dp0\nS'a'\np1\nI1\ns.",
    ]
    own = [
        b"- id: our-remedy\n  title: Ours\n  says: x\n",
        b"- id: x\n  library: vllm\n  versions: '>=1'\n  title: t\n",
    ]
    texts = [*logs, *scripts, b"token=abc export HF_TOKEN=hf_aaaaaaaaaaaaaaaaaaaaaaaa https://u:p@h/"]
    catalogues = [
        file.read_bytes() for file in sorted((Path(language.__file__).parent / "languages/zh").glob("*.json"))
    ]
    sentences = [remedy.says.encode() for remedy in load_knowledge().remedies]
    record = made_record(folder / "made", steps=6)
    records, rings = (
        [(record / SAMPLES).read_bytes()],
        [(record / RING).read_bytes() if (record / RING).exists() else RINGED],
    )
    sittings = [SITTING]
    run_files = [RUN_FILE]
    configs = [b"theme = dark\nrefresh = 2\nkey quit = x\nlanguage = zh\nmouse = on\n"]
    signatures = load_knowledge().signatures
    refusals = (ScriptError, EditRefused)
    whole = [script for script in scripts if b"python" in script]
    return [
        Target("hostile text", _hostile, texts, (), 20),
        Target("secrets", lambda data: redact(data.decode("utf-8", "replace")), texts, (), 10),
        Target("sizes", _sizes, [b"79.15 GiB", b"7B", b"Qwen2.5-7B"], (ValueError,), 20),
        Target("pickles", plain_data, pickles, (RefusedPickleError,), 20),
        Target("config.json", lambda data: read_model_config(_kept(folder / "config.json", data)), jsons, (), 4),
        Target(
            "machine files", lambda data: read_machine_file(_kept(folder / "m.json", data)), machine, (ValueError,), 4
        ),
        Target("logs", lambda data: read_text(data.decode("utf-8", "replace"), "x", signatures), logs, (LogError,)),
        Target("shell", lambda data: _script("run.sh", data), scripts, refusals),
        Target("python", lambda data: _script("run.py", data), python, refusals),
        Target("yaml", lambda data: _script("run.yaml", data), yamls, refusals, 4),
        Target("json", lambda data: _script("run.json", data), jsons, refusals, 4),
        Target("catalogues", lambda data: _catalogue(folder / "zh", data), catalogues, (), 4),
        Target("sentences of others", lambda data: _sentence(data.decode("utf-8", "replace")), sentences, (), 20),
        Target("records", lambda data: _record(folder / "record", data), records, (RecordError,), 4),
        Target("rings", lambda data: _ring(folder / "ring", data), rings, (), 4),
        Target("sittings", lambda data: session_store.load(_kept(folder / "s.json", data)), sittings, (ValueError,), 4),
        Target("run files", lambda data: _run_file(_kept(folder / "r.yaml", data)), run_files, (ValueError,), slow=5.0),
        Target("configuration", lambda data: _config(folder, data), configs, (), 4),
        Target("sittings on damaged scripts", lambda data: _sitting(folder / "sat", data), whole, refusals, slow=5.0),
        Target("own knowledge", lambda data: _knowledge(folder / "own", data), own, ()),
    ]


def _hostile(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for cleaned in (clean(text), clean_line(text)):
        assert "\x1b" not in cleaned
        assert not any(ord(c) < 32 and c not in "\t\n" for c in cleaned)
        assert not any(0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in cleaned)
        cells(cleaned)


def _sizes(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    size_in_name(text)
    parse_size(text)


def _script(name: str, data: bytes) -> None:
    path = Path("/nowhere") / name
    if b"\0" in data or not data:  # such a file is refused before it is read
        return
    kinds = {".sh": "shell", ".py": "python", ".yaml": "yaml", ".json": "json"}
    document = Document(path, data, kinds[path.suffix])  # type: ignore[arg-type]
    script = read_documents(Files(given={str(path): document}), path, ())
    for launch in script.launches[:1]:
        for setting in launch.settings[:1]:
            for done in rewrite(script, launch.index, [EditRequest(setting.key, "7", "why")]):
                assert apply_edits(done.document.data, done.edits) == done.new


def _knowledge(folder: Path, data: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "remedies.yaml").write_bytes(data)
    merged(load_knowledge(), [folder])


def _catalogue(folder: Path, data: bytes) -> None:
    """Whatever it holds, a sentence is said, and a stranger's name in it stands as it is."""
    folder.mkdir(exist_ok=True)
    (folder / "program.json").write_bytes(data)
    told = language.read_catalogue(folder)
    name = "{0.__class__} {x}"
    language.speak(language.CHINESE, {**told, "{name} is here": next(iter(told.values()), "")})
    try:
        language.say("{name} is here", name=name)
        for text in [*told][:3]:
            language.say(text)
        language.speak(language.CHINESE, {"{name} is here": "{name}在此{"})
        assert language.say("{name} is here", name=name) == f"{name} is here"
    finally:
        language.speak(language.ENGLISH)


def _sentence(text: str) -> None:
    told = filled(text, {"old": "{new}", "new": "{0.__class__}", "freed": "1 GiB"})
    assert len(told) <= len(text) * 3 + 40
    assert language.say("{name} x", name=text) == f"{text} x"


def _record(folder: Path, data: bytes) -> None:
    """Read it, and all that is computed of it."""
    folder.mkdir(exist_ok=True)
    (folder / SAMPLES).write_bytes(data)
    measure_recording(read_record(folder))


def _ring(folder: Path, data: bytes) -> None:
    folder.mkdir(exist_ok=True)
    if not (folder / SAMPLES).exists():
        shutil.copy(folder.parent / "made" / SAMPLES, folder / SAMPLES)
    (folder / RING).write_bytes(data)
    measure_recording(read_record(folder))


def _sitting(folder: Path, data: bytes) -> None:
    """Script and log to the plan and its patch, and the reports of it."""
    if b"\0" in data or not data:
        return
    folder.mkdir(exist_ok=True)
    (folder / "run.sh").write_bytes(data)
    log = folder / "train.log"
    if not log.exists():
        shutil.copy(RUNS / "easyr1" / "train.log", log)
    asked = SessionRequest(script=folder / "run.sh", logs=(log,), gpus="8xA100-40GB", host_ram="760GB")
    state = session.open_session(asked)
    session.patch(state)
    encode(diagnose_json(state))
    short_report(state)
    text_report(state)


def _run_file(path: Path) -> None:
    size_run_file(path, SessionRequest())


def _config(folder: Path, data: bytes) -> None:
    (folder / "rl-oom-advisor").mkdir(exist_ok=True)
    (folder / "rl-oom-advisor" / "config").write_bytes(data)
    for _, value, _ in choices_in_force(read_config({"XDG_CONFIG_HOME": str(folder)})):
        assert isinstance(value, str)


def _kept(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def one(target: Target, data: bytes, outcome: Outcome) -> None:
    """One execution; what goes wrong is added to the outcome."""
    begun = time.process_time()
    outcome.executions[target.name] += 1
    try:
        target.run(data)
    except target.refuses:
        outcome.refused[target.name] += 1
    except Exception:  # noqa: BLE001 - whatever is raised beyond the refusals is what is looked for
        outcome.faults.append((target.name, data, traceback.format_exc(limit=-4)))
    if (took := time.process_time() - begun) > target.slow:
        outcome.faults.append((target.name, data, f"took {took:.1f} s"))


def fuzz(count: int, seed: int = 1, names: Sequence[str] = ()) -> Outcome:
    """`count` executions of each target, times its weight."""
    outcome, chance = Outcome(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for target in targets(Path(folder)):
            if names and target.name not in names:
                continue
            for _ in range(count * target.weight):
                one(target, damaged(chance.choice(target.seeds), chance, target.seeds), outcome)
    return outcome


def main(count: int, seed: int = 1, *names: str) -> None:
    """Print what was run, and every fault."""
    outcome = fuzz(count, seed, names)
    for name, data, why in outcome.faults[:20]:
        print(f"--- {name}: {data[:400]!r}\n{why}")
        Path(tempfile.gettempdir(), f"fault-{name.replace(' ', '-')}-{len(data)}").write_bytes(data)
    print(json.dumps({"executions": dict(outcome.executions), "refused": dict(outcome.refused)}, indent=1))
    told = ", ".join(f"{name} {count}" for name, count in Counter(name for name, _, _ in outcome.faults).items())
    print(f"{outcome.executions.total()} executions, {len(outcome.faults)} faults{f' ({told})' if told else ''}")


if __name__ == "__main__":
    main(int(sys.argv[1]), *(int(word) for word in sys.argv[2:3]), *sys.argv[3:])  # type: ignore[arg-type]
