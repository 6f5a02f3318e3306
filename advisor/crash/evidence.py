"""One proven fact with file:line and the fields it printed; the ordered story of a crash; what parts a text names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.crash.command_lines import PrintedCommand
from advisor.crash.observations import Observation
from advisor.crash.patterns import first_match, lines_with
from advisor.knowledge.literals import needed
from advisor.knowledge.schema import CountName, Project
from advisor.language import mark, say
from advisor.words import Memory, Phase, Platform, Verdict

EvidenceRole = Literal["cause", "echo", "victim", "pointer", "hint", "warning", "telemetry", "progress"]
"""cause: proves or denies a shortage · echo: the same fact again · pointer: a wrapper that only points upwards
· hint: ambiguous alone (SIGKILL) · warning: pressure, no crash · telemetry: a memory reading
· progress: a phase mark."""

TOLD = ("oom-told-gpu", "oom-told-host", "oom-told-shm", "oom-told")
"""A person's own words that memory ran out: a mark of weak grade, which any line of the program's own outranks."""
KILL_TOLD = "kill-told"
"""A person's words that a process was killed."""
_HEARSAY = frozenset((*TOLD, KILL_TOLD, "hang-told", "disk-told"))
HEARD_OTHERWISE = mark(
    "Probably not a shortage of memory: somebody says so (line {line}), and no line of the log proves what failed."
)


class Evidence(Struct, frozen=True):
    """One line (or group of lines) that proves something. `text` is clean; `line` is 1-based. `fields` keep what was
    printed: sizes as int bytes (tried_bytes, total_bytes, free_bytes, …), the rest as printed."""

    signature: str
    role: EvidenceRole
    file: str
    line: int
    text: str
    memory: Memory = "unknown"
    phase: Phase = "unknown"
    fields: Mapping[str, int | float | str] = field(default_factory=dict)
    process: str = ""
    """Who printed it: "WorkerDict pid=123", "rank3"; "" where the line does not say."""
    repeats: int = 0
    """How often the same fact came again (folded echoes)."""
    runs_ago: int = 0
    """Of a log that holds several runs: 0 the one told of, 1 the one before it …"""


class Frame(Struct, frozen=True):
    """A traceback frame near the cause, innermost last."""

    file: str
    line: int
    function: str
    log_line: int
    text: str = ""
    """The source line that the log prints below it; "" where it prints none."""


class TopUser(Struct, frozen=True):
    """A row of Ray's table of memory users."""

    pid: int
    used_bytes: int
    command: str


ReadingKind = Literal[
    "allocated",
    "reserved",
    "used",
    "free",
    "kv_cache",
    "weights",
    "freed",
    "still_used",
    "graphs",
    "host_used",
    "peak",
]
"""What a memory reading speaks of: torch's live tensors · torch's pool · the whole card in use · the card free
· an engine's KV cache · its weights · what its sleep gave back · what was in use after that · CUDA graphs
· the node's memory in use · the most that torch allocated until then."""


class Reading(Struct, frozen=True):
    """One memory reading met in a log."""

    line: int
    phase: Phase
    kind: ReadingKind
    bytes: int
    process: str = ""
    at: str = ""
    """What the log calls the moment: "After compute_log_prob", "Before vllm offload"; "" where it does not say."""
    file: str = ""


class Crash(Struct, frozen=True):
    """What the logs prove. `evidence[0]` is the first cause where there is one."""

    verdict: Verdict
    memory: Memory
    phase: Phase
    signature: str = ""
    """Signature id of the first cause; "" where nothing was found."""
    evidence: tuple[Evidence, ...] = ()
    frames: tuple[Frame, ...] = ()
    source_line: str = ""
    """The line right above the failure, where it is source whose frame is not there; "" else."""
    phase_because: str = ""
    """One clause: "frame dp_actor.py update_policy, line 812"."""
    top_users: tuple[TopUser, ...] = ()
    users_cut: bool = False
    """Rows of that table are missing: larger processes may have stood above them."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions met in the log, distribution name → version."""
    traced: Mapping[str, str] = field(default_factory=dict)
    """Versions that the lines of the traceback tell, the same way."""
    gpu_names: tuple[str, ...] = ()
    gpu_total_bytes: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Native keys the log itself prints resolved (config dump, `Error executing job with overrides`, a command)."""
    command: PrintedCommand | None = None
    """The command that started the run, where the log prints it."""
    engine_figures: Mapping[str, str] = field(default_factory=dict)
    """Knobs in force by the own lines of engines and libraries, whatever the framework calls them."""
    model_config: str = ""
    """The configuration of the model that was loaded first, as JSON; "" where the log prints none."""
    counts: Mapping[CountName, int] = field(default_factory=dict)
    """Parameters and ranks as libraries print them."""
    platform: Platform = "cuda"
    """What computes, by words that only its own software prints."""
    host_total_bytes: int | None = None
    """RAM of a node, where a reading shows it or shows how full it was."""
    host_filled: tuple[float, int] | None = None
    """Percent of the machine's RAM in use at the last reading that says so, and its line."""
    frameworks: tuple[str, ...] = ()
    """Frameworks whose marks the log bears, strongest first."""
    project: Project | None = None
    """The project whose tree or package its paths and lines name."""
    unclear_because: str = ""
    settle_by: tuple[str, ...] = ()
    """What would settle an unclear verdict."""
    lines_read: int = 0
    steps_done: int | None = None
    """Training steps that were done before the end of the log; None where no counter says."""
    preliminary: int = 0
    """Bytes, where only so many at the end of a long log were read: line numbers count from there, and an earlier
    failure may still turn up; 0: all was read."""
    readings: tuple[Reading, ...] = ()
    """Memory readings in order, thinned where there are many."""
    line_index: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Of very long logs, by name: (lines before, byte offset) of some lines' beginnings, in order."""
    phase_among: tuple[Phase, ...] = ()
    """Where `phase` is unknown: the phases that the failing frame leaves, the likeliest first."""
    phase_by_mark: bool = False
    """Only the last mark of progress shows the phase: what came next is not seen."""
    table_command: str = ""
    """The command by which Ray says that its table of memory users can be read; "" where the log has none."""
    speaks_of: frozenset[Part] = frozenset()
    """Parts that only some runs have, of which some line speaks."""
    dated: str = ""
    """The last day that its lines bear with a time, "2025-02-18"; "" where none bears a year."""
    steps_seen: bool = False
    """Some counter shows that steps were done, a trainer's own or a bare bar's."""
    stepped: bool = False
    """A counter of the training itself is past its beginning, also one that does not count steps (its epochs)."""
    preceded: tuple[Phase, int] | None = None
    """A checkpoint or a validation that ended right before the failure, and the line that shows it."""
    resumed: int | None = None
    """The line on which the run takes up a checkpoint, where no step was done between it and the failure."""
    trained_before: int | None = None
    """The line that sums up a training, where the same process loads a model after it."""
    doubts: tuple[str, ...] = ()
    """What keeps the logs from proving it all, in sentences: what of them was not read, an order that nothing tells."""
    finished: bool = False
    """The log shows the run's own end."""
    described: Mapping[str, str] = field(default_factory=dict)
    """Settings in a person's sentences, by whatever name they call them."""
    prose: tuple[str, ...] = ()
    """Words of the lines that a person wrote, each once."""
    observations: tuple[Observation, ...] = ()
    """What a person saw of settings, levers, versions and parts of the run."""
    statements: frozenset[str] = frozenset()
    """What a person wrote of the run, as `statements_in` names it."""

    runs_told: Mapping[str, int] = field(default_factory=dict)
    """Memory → on how many GPUs the run of it was, where a person tells of two runs that filled different ones."""

    @property
    def failing(self) -> tuple[Frame, ...]:
        """The frames, or the bare source line in the place of one."""
        line = self.evidence[0].line if self.evidence else 0
        return self.frames or ((Frame("", 0, "", line, self.source_line),) if self.source_line else ())

    @property
    def is_well(self) -> bool:
        """Nothing failed as far as the log goes."""
        return self.verdict == "not_oom" and not self.signature

    @property
    def is_hearsay(self) -> bool:
        """What failed stands in a person's words alone."""
        return self.signature in _HEARSAY


_OUTSIDE = mark(
    "The exit code (137 or -9 is a kill), `dmesg -T | grep -i oom` on the node, `sacct -o State,ExitCode`, and "
    "memory.events of the container."
)
NOTHING = Crash(verdict="unclear", memory="unknown", phase="unknown", unclear_because=mark("no log was given"))


def stopped_without_a_word(crash: Crash) -> Crash:
    """A log of a run that went well until it says no more: killed from outside, or somebody knows that it died."""
    because = stopped()
    return replace(crash, verdict="unclear", memory="unknown", unclear_because=because, settle_by=(say(_OUTSIDE),))


def stopped() -> str:
    """Why a log that stops proves nothing."""
    return say("the log stops without a word: killed from outside, by a host without memory or by a time limit")


def no_log() -> Crash:
    """NOTHING, in words."""
    return replace(NOTHING, unclear_because=say(NOTHING.unclear_because))


Part = Literal["rollouts", "engine", "ray", "pictures", "sound", "classes", "tools", "wsl", "hf", "lightning"]

_WORDS: Mapping[Part, str] = {
    "rollouts": (
        r"(?i)vllm|sglang|roll_?out|grpo|rloo|(?<![a-z])ppo(?![a-z])|reinforce|policy|reward|generat(?:e_seq|ion_batch)|sleep_mode"
    ),
    "engine": (
        r"(?i)vllm|sglang|lmdeploy|tensorrt_llm|roll_?out|sleep_mode|cumem|gpu_memory_utilization|mem_fraction_static"
    ),
    "ray": r"(?<![-\w])(?:Ray|ray|RAY)(?![-\w])|\b(?:Raylet|raylet)\b|\bRAY_[A-Z]|\bRay(?:Task|Actor)?Error\b"
    r"|ActorDied",
    "pictures": (
        r"(?i)pixel_values|(?:max|min)_pixels|image_(?:grid|token|processor)|vision_(?:tower|model)|modeling_\w*vl\b"
        r"|mm_projector|<(?:image|video)>"
    ),
    # huggingface/transformers@v4.51.0 src/transformers/models: rows of sound, or pictures of one size: no text to cut
    "sound": (
        r"WhisperFor|whisper-(?:tiny|base|small|medium|large)|Wav2Vec2|wav2vec2-|HubertFor|WavLMFor|SpeechT5|ForAudioClassification"
        r"|ForImageClassification|ForObjectDetection|ForSemanticSegmentation|ViTFor|vit-(?:base|large)-patch|UNet2DCondition"
    ),
    # processes that agents start on the node; a default that is printed (sandbox_fusion, tool_config_path None) is none
    "tools": (
        r"(?i)(?<![a-z])sandbox(?:es)?(?=[-_:=])(?!_fusion)|code_?interpreter|(?:Kernel|Sandbox|Tool)Actor\b|tool_?server"
        r"|tool_config_path['\"]?\s?[:=]\s?['\"]?(?!['\"]|null|none)\w*[./]|verl[-_]tool|(?<![a-z])swe[-_]?(?:bench|agent|gym|smith|rex)"
        r"|(?<![a-z])terminus(?![a-z])|terminal[-_]?bench|(?<![a-z])(?:math_?tir|torl|retool)(?![a-z])|playwright|browsergym|webarena"
        r"|(?<![a-z])(?:libero|robotwin|robosuite|mujoco|maniskill|simpler_?env|alfworld)(?![a-z])|SimpleVLA"
    ),
    "wsl": r"\bWSL2?\b|microsoft-standard-WSL|(?<![\w/])/mnt/[c-z]/",
    # transformers' Trainer, and what is built on it
    "hf": (
        r"TrainingArguments|HfArgumentParser|transformers/trainer|(?<![A-Za-z])(?:trl|TRL|peft_trainer)(?![A-Za-z])|[a-z]Trainer\b|\bTrainer\("
        r"|per_device_train|llamafactory|LLaMA-Factory|axolotl|unsloth|ms-?swift|run_(?:clm|sft|glue|mlm|seq2seq)"
    ),
    "lightning": r"(?m)^\s*(?:import|from) (?:pytorch_)?lightning\b|lightning[/.](?:fabric|pytorch)\b",
    "classes": (
        r"For(?:Sequence|Token|Image|Audio)Classification|ForQuestionAnswering|ForMultipleChoice|SentenceTransformer\b"
    ),
}
"""A text with none of a part's words is of a run without that part, as far as it shows."""


def parts_in(text: str) -> frozenset[Part]:
    """The parts of which the text speaks, by the lines that hold a literal of their words."""
    lower = text.lower()
    literals = _literals() if len(lower) == len(text) else [()] * len(_WORDS)
    every = zip(_WORDS.items(), lines_with(text, literals, lower), strict=True)
    return frozenset(part for (part, words), lines in every if first_match(words, lines))


@cache
def _literals() -> list[tuple[str, ...]]:
    return [needed(words) for words in _WORDS.values()]
