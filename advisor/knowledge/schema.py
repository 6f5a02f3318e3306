"""What the files of knowledge/ may say, as types. msgspec decodes into these and refuses unknown keys.

Facts are data. Whatever computes is a named rule in code (`divide_then_times_n`, `divides`, `lower`) that the
files refer to by name with parameters; there is no expression language.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from advisor.words import Memory, Phase, Results, Verdict

Scalar = str | int | float | bool | None
Rule = dict[str, Any]
"""{rule: NAME, parameter: value, …}"""
Grade = Literal["confirmed", "plausible", "reported", "failed", "folklore"]
"""confirmed: someone ran it and it helped, and the mechanism supports it · plausible: the mechanism supports it
· reported: only said · failed: tried without success · folklore: the mechanism contradicts it."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: immutable, and a misspelt key is an error."""


# --- signatures.yaml ---------------------------------------------------------------------------------------------


class Signature(Strict, frozen=True):
    """What a crash line looks like and what it proves. Regexes run on cleaned text; groups named *_bytes hold sizes."""

    id: str
    title: str
    anchors: tuple[str, ...]
    """Case-exact literals; a line (or joined message) is looked at only when it holds one."""
    pattern: str
    memory: Memory
    role: str
    """An EvidenceRole."""
    verdict: Verdict | None = None
    """What this line alone proves: oom, not_oom; None: nothing by itself."""
    phase: Phase = "unknown"
    """Implied by the line itself, where it is."""
    rank: int = 50
    """Look-alikes first: lower is tested earlier."""
    span_lines: int = 1
    """Lines the message may cover (split, wrapped, tables below)."""
    sizes: dict[str, str] = {}
    """Regex group → field name, where the printed size becomes bytes."""
    says: str = ""
    """One sentence for the user."""
    look_alikes: tuple[str, ...] = ()
    versions: str = ""
    sample: str = ""
    confidence: str = ""
    source: str = ""
    settle_by: tuple[str, ...] = ()
    """For lines that prove nothing alone: what would settle it."""


class FrameRule(Strict, frozen=True):
    """A traceback frame (or Ray method, or engine text) and the phase it means."""

    frame: str
    """Regex over "file.py:function" or over text."""
    phase: Phase
    in_: Literal["frame", "text", "task"] = msgspec.field(name="in", default="frame")
    frameworks: tuple[str, ...] = ()
    under: str = ""
    """Only when this regex matches a frame further out."""
    weight: int = 50
    """Higher wins over deeper frames of lower weight; equal weight: the deepest."""
    source: str = ""


class Progress(Strict, frozen=True):
    """A progress line and the phase it means ("Update policy: 31%|")."""

    pattern: str
    phase: Phase
    frameworks: tuple[str, ...] = ()


class Signatures(Strict, frozen=True):
    """signatures.yaml"""

    signatures: tuple[Signature, ...]
    frames: tuple[FrameRule, ...]
    progress: tuple[Progress, ...] = ()
    versions: tuple[dict[str, str], ...] = ()
    """{library, pattern} with one group: versions met in logs."""
    framework_marks: tuple[dict[str, str], ...] = ()
    """{framework, pattern}: what only that framework prints."""


# --- frameworks/*.yaml -------------------------------------------------------------------------------------------


class Recognition(Strict, frozen=True):
    """How a launch of this framework is told apart. All given parts must agree; hints only raise the confidence."""

    programs: tuple[str, ...] = ()
    """fnmatch patterns over Launch.program: "verl.trainer.main_ppo", "swift rlhf", "*/train_ppo_ray.py"."""
    has: tuple[str, ...] = ()
    """At least one of these keys is set (fnmatch)."""
    lacks: tuple[str, ...] = ()
    """None of these keys is set (fnmatch)."""
    python_bases: tuple[str, ...] = ()
    """Base classes of a config dataclass (Open-Reasoner-Zero)."""
    hints: tuple[str, ...] = ()
    """Substrings of the script's text."""
    log: tuple[str, ...] = ()
    """Regexes over log lines."""
    priority: int = 50
    """Most specific first: lower is tried earlier."""
    marks: tuple[str, ...] = ()
    """At least one of these substrings (any case) stands in the script's text or in a resolved value."""


class Era(Strict, frozen=True):
    """A stretch of versions in which keys, defaults and mechanics stay put. First match wins, newest first."""

    id: str
    versions: str = ""
    """packaging specifier over the framework's own version: ">=0.2,<0.4"; "" any."""
    has: tuple[str, ...] = ()
    """Without a version: the era is this one when one of these keys is set."""
    lacks: tuple[str, ...] = ()
    released: str = ""
    source: str = ""


class SettingFact(Strict, frozen=True):
    """A native key of one dialect."""

    knob: str | None = None
    """The canonical knob it carries (knobs.yaml); None: known, but no lever of ours."""
    type: Literal["int", "float", "bool", "str", "flag", "list"] = "str"
    """flag: a bare store_true; bool takes true/false in the dialect's own spelling."""
    unit: str = ""
    """In words: "prompts, all GPUs", "sequences per GPU", "tokens per GPU", "fraction of the card"."""
    default: Scalar | dict[str, Scalar] = None
    """A value, or era id → value ("*" for the others). None: the framework demands or derives it."""
    eras: tuple[str, ...] = ()
    """Eras in which the key exists; () = all."""
    becomes: Rule | None = None
    """How the framework turns the value into the knob's unit; None: as it is."""
    must: tuple[Rule, ...] = ()
    """Divisibility and bounds, checked before a value is proposed."""
    no_effect_when: Rule | None = None
    also: dict[str, Rule] = {}
    """Further knobs the same key carries → how the value becomes each (swift's --deepspeed: stage and offload)."""
    moves: dict[str, str] = {}
    """phase → gpu, gpu-, host, host-, none (a minus: raising the value lowers it there)."""
    results: Results = "unchanged"
    caveat: str = ""
    false_friend: str = ""
    """What its name leads people to try, and why that does nothing here: said under "not proposed"."""
    source: str = ""


class EnvironmentFact(SettingFact, frozen=True):
    """An environment variable; same grain as a setting."""

    reaches_workers_by: str = ""
    """Where it has to be set so that the workers see it."""


class Mechanics(Strict, frozen=True):
    """How this framework holds memory: what the ledger needs and no setting says. Bytes are per parameter.

    Each field is one value; `per_era` of the dialect overrides fields by era id.
    """

    trainer: Literal["fsdp", "deepspeed", "megatron", "ddp"] = "fsdp"
    weight_bytes: float = 4
    """Sharded weights kept by the trainer (FSDP holds fp32; DeepSpeed bf16)."""
    gradient_bytes: float = 4
    master_bytes: float = 0
    moment_bytes: float = 8
    step_extra_bytes: float = 4
    """Temporaries of the optimizer step (torch foreach 1x fp32 shard; fused 0; ZeRO-3 one sub-group)."""
    lazy_optimizer: bool = True
    """Moments appear at the first step (torch); DeepSpeed allocates them at initialisation."""
    unsharded_bytes: float = 2
    """Gathered copy of a unit in forward and backward."""
    reference_bytes: float = 2
    reference_on: Literal["gpu", "host"] = "gpu"
    """host: streamed layer by layer (FSDP CPUOffload)."""
    reference_when: Literal["always", "kl", "kl_full"] = "kl"
    """Built always, only with a KL term, or only with a KL term and full (not LoRA) training."""
    logits_scope: Literal["prompt_and_response", "response"] = "prompt_and_response"
    logits_update_bytes: float = 8
    """Live bytes per token x vocabulary entry at the peak of forward + backward."""
    logits_forward_bytes: float = 4
    """The same in a no-grad pass."""
    logits_factor_without_deepspeed: float = 1
    """Times both where a run of a `deepspeed` trainer goes without it: accelerate then hands out the logits in fp32."""
    engine_share_of: Literal["total", "free"] = "total"
    engine_sleeps: bool = True
    sleep_level: int = 1
    """1 keeps a pinned host copy of the engine's weights, 2 does not, 0: no sleep."""
    sleep_residue_bytes: int = 2_000_000_000
    """Left on the card by a sleeping engine (context, graphs)."""
    wakes_beside: tuple[str, ...] = ()
    """What of the trainer is still on the card when the engine wakes: weights, gradients, master, moments."""
    sync_gathers: Literal["tensor", "unit", "full"] = "tensor"
    sync_wakes: Literal["all", "weights"] = "all"
    """What of a sleeping engine is awake during the weight sync: its whole share, or its weights only."""
    states_sleep: bool = False
    """Optimizer states always leave the card between updates; elsewhere `actor.state_sleep` says."""
    colocated: bool = True
    offload_lowers_update: bool = False
    """True: offload is CPU Adam. False (verl): states return to the card for the update."""
    context_bytes: int = 600_000_000
    """CUDA context of one process."""
    processes_per_gpu: int = 1
    """Processes with a CUDA context on each card (OpenRLHF colocated: one a role)."""
    loads_full_model_per_rank: bool = False
    fixed_buffer_bytes: int = 0
    """Buckets and live-parameter allowances held all the time."""
    host_process_bytes: int = 4_000_000_000
    """Resident memory of one worker process (CUDA, torch, libraries)."""
    source: str = ""


class Framework(Strict, frozen=True):
    """One dialect: frameworks/*.yaml"""

    framework: str
    """The contract's word."""
    title: str
    package: str
    """Distribution whose version gives the era."""
    syntax: Literal["hydra", "dotlist", "argparse", "dataclass", "yaml"]
    recognised_by: tuple[Recognition, ...]
    algorithm: Rule | None = None
    """{key: native key, values: {native: canonical}} or {fixed: "ppo"}."""
    eras: tuple[Era, ...] = ()
    settings: dict[str, SettingFact] = {}
    environment: dict[str, EnvironmentFact] = {}
    must: tuple[Rule, ...] = ()
    """Constraints over several keys."""
    topology: Rule = {}
    """{rule: NAME, …}: how nodes, GPUs per node and roles are read from settings and environment."""
    mechanics: Mechanics = Mechanics()
    per_era: dict[str, dict[str, Scalar | list[str]]] = {}
    """era id → fields of Mechanics that differ."""
    frames: tuple[FrameRule, ...] = ()
    progress: tuple[Progress, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""


# --- decision_tree.yaml ------------------------------------------------------------------------------------------


class Answer(Strict, frozen=True):
    """One answer to a question."""

    title: str
    shown_by: tuple[Rule, ...] = ()
    """Facts that give this answer by themselves: {fact: NAME, …}; the first answer whose fact holds is taken."""
    next: str | None = None
    leads_to: str | None = None
    """A cause id."""
    because: str = ""


class Question(Strict, frozen=True):
    """A question of the tree. "I don't know" is always offered beside `answers`."""

    id: str
    asks: str
    why: str
    answers: dict[str, Answer]
    if_unknown: str
    """How to find out."""
    unknown_next: str | None = None
    unknown_leads_to: str | None = None


class Cause(Strict, frozen=True):
    """A leaf: what was wrong, what proves it, what rules it out, and what relieves it."""

    id: str
    title: str
    explains: str
    memory: Memory
    proved_by: tuple[Rule, ...] = ()
    ruled_out_by: tuple[Rule, ...] = ()
    remedies: tuple[str, ...] = ()
    """Remedy ids in order of preference."""
    folklore: tuple[str, ...] = ()
    """Remedy ids that are often told and do not help here."""
    record_next_time: str = ""


class Tree(Strict, frozen=True):
    """decision_tree.yaml"""

    start: str
    questions: tuple[Question, ...]
    causes: tuple[Cause, ...]


# --- remedies.yaml, advisories.yaml, cases/*.yaml, models.yaml, gpus.yaml, knobs.yaml ------------------------------


class RemedyEvidence(Strict, frozen=True):
    """What a documented case says of a remedy."""

    case: str
    grade: Grade
    because: str = ""


class Remedy(Strict, frozen=True, kw_only=True):
    """Something that can be changed, what it saves where, and what it costs."""

    id: str
    title: str
    kind: Literal["setting", "environment", "version", "machine", "data", "manual"]
    knob: str | None = None
    memory: Memory
    phases: tuple[Phase, ...] = ()
    """Phases it relieves; () = all of that memory."""
    never_for: tuple[str, ...] = ()
    """Signature or cause ids where it harms."""
    value: Rule | None = None
    """How the new value is found: {rule: halve | set | largest_that_fits | …}."""
    also: dict[str, Rule] = {}
    """Other knobs that must be set along with it: knob → value rule."""
    tier: Literal["free", "slower", "host_ram", "changes_results", "version", "hardware"]
    results: Results
    costs: str
    says: str
    """Two sentences for the user; {old}, {new}, {freed} and facts named in the code may be used."""
    caveats: tuple[str, ...] = ()
    applies_when: tuple[Rule, ...] = ()
    environment: str = ""
    """The variable to set where no dialect carries the knob (kind environment)."""
    evidence: tuple[RemedyEvidence, ...] = ()
    source: str = ""


class Advisory(Strict, frozen=True):
    """A library version that leaks, asserts or clashes."""

    id: str
    library: str
    versions: str
    """packaging specifier of the bad ones."""
    title: str
    says: str
    when: tuple[Rule, ...] = ()
    """Facts that must hold for it to matter."""
    cause: str | None = None
    safe: tuple[str, ...] = ()
    """Specifiers of the safe neighbours, preferred first."""
    sets: dict[str, bool] = {}
    """Knobs that hold while it applies (leak.gathered_weights)."""
    source: str = ""
    grade: Grade = "confirmed"


class Case(Strict, frozen=True):
    """A documented case: what was reported, and what the mechanism supports."""

    id: str
    title: str
    source: str
    situation: dict[str, Scalar]
    """Facts to match: framework, model, gpus, host_ram, memory, phase, signature, library versions, setting values."""
    reported: dict[str, Any]
    mechanism: str
    grade: Grade
    folklore: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    values: dict[str, list[Scalar]] = {}
    """Native key → values that were reported to work, best first."""


class ModelFact(Strict, frozen=True):
    """A model's shape. All counts are of the text model unless `vision_*`."""

    name: str
    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    parameters: int
    """Published count, text and vision together."""
    vision_parameters: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    qkv_bias: bool = False
    kv_bytes_per_token: int | None = None
    """bf16, TP 1; given only where 2*layers*kv_heads*head_dim*2 does not hold (MLA)."""
    aliases: tuple[str, ...] = ()
    """fnmatch patterns, case-insensitive, over the last path component."""
    source: str = ""
    head_norm: Literal["none", "head", "full"] = "none"
    """Norms on queries and keys: none, one weight a head dimension (Qwen3), one over the full width (OLMo 2)."""
    norms_per_layer: int = 2
    """4 where norms stand before and after each block (Gemma 2 and 3, GLM-4-0414)."""
    dense_layers: int = 0
    """Leading layers of a mixture-of-experts model whose MLP is dense, `intermediate` wide."""
    shared_intermediate: int = 0
    """Width of the experts that every token passes (all of them together)."""
    shared_gate: bool = False
    """A gate weighs the shared experts (Qwen1.5-MoE)."""
    router_bias: bool = False
    """The router keeps a bias for each expert that balances their load (DeepSeek-V3)."""
    query_rank: int = 0
    """MLA: rank of the query projection; 0: queries are projected at once."""
    latent_rank: int = 0
    """MLA: rank of the compressed keys and values; 0: no MLA."""
    rope_dim: int = 0
    """MLA: head dimensions that carry the position."""
    value_dim: int = 0
    """MLA: head dimension of the values."""


class GpuFact(Strict, frozen=True):
    """A card: names it goes by, and what the driver reports as its memory."""

    name: str
    aliases: tuple[str, ...]
    total_bytes: int
    context_bytes: int | None = None
    source: str = ""


class KnobFact(Strict, frozen=True):
    """A canonical knob: one vocabulary for remedies, tree and ledger."""

    id: str
    title: str
    unit: str
    type: Literal["int", "float", "bool", "str"]
    says: str = ""


class Knowledge(Strict, frozen=True):
    """All of it."""

    digest: str
    signatures: Signatures
    frameworks: tuple[Framework, ...]
    tree: Tree
    remedies: tuple[Remedy, ...]
    advisories: tuple[Advisory, ...]
    cases: tuple[Case, ...]
    models: tuple[ModelFact, ...]
    gpus: tuple[GpuFact, ...]
    knobs: tuple[KnobFact, ...]
