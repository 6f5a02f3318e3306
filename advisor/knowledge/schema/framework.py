"""Types frameworks/*.yaml: how a framework names its settings, runs its phases and checks its numbers.

docs/rules.md says which names the expressions know.
"""

from __future__ import annotations

from typing import Literal

from advisor.knowledge.schema.base import Scalar, Strict
from advisor.knowledge.schema.crash import FrameRule, Progress
from advisor.knowledge.schema.facts import Constraint, NewestRead, Resume
from advisor.rules.expression import Expression
from advisor.words import Results


class Recognition(Strict, frozen=True):
    """How a launch of this framework is told apart. All given parts must agree; hints only raise the confidence."""

    programs: tuple[str, ...] = ()
    """fnmatch patterns over Launch.program: "verl.trainer.main_ppo", "swift rlhf", "*/train_ppo_ray.py"."""
    has: tuple[str, ...] = ()
    """At least one of these keys is set (fnmatch)."""
    has_all: tuple[str, ...] = ()
    """Every one of these keys is set (fnmatch)."""
    lacks: tuple[str, ...] = ()
    """None of these keys is set (fnmatch)."""
    python_bases: tuple[str, ...] = ()
    """Base classes of a config dataclass (Open-Reasoner-Zero)."""
    not_imported: bool = False
    """These classes count only where the file does not import them: a part of one, pasted without its head."""
    hints: tuple[str, ...] = ()
    """Substrings of the script's text."""
    log: tuple[str, ...] = ()
    """Regexes over log lines, each with a literal of three letters: one that matches is enough, by itself."""
    below: bool = False
    """Its lines in a log are of a library below many programs: they say whose settings one has that bears no other
    mark, and neither whose code it runs nor what its own options are."""
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
    told_by_keys: bool = False
    """Another era has the same versions: an unreleased one, whose keys moved while its number stood."""
    released: str = ""
    source: str = ""
    libraries: dict[str, str] = {}
    """Library → specifier of the versions it runs with; asked only where neither version nor keys tell the era."""
    requires: dict[str, str] = {}
    """Library → the oldest version that its own requirements take."""
    folders: tuple[str, ...] = ()
    """Folders of forks that were cut in this era, and programs that it alone has, as paths name them."""
    fork_keys: tuple[str, ...] = ()
    """Keys (fnmatch) that forks cut in this era have and upstream never had: one of them tells it."""


class Idle(Strict, frozen=True):
    """When a key does nothing, and why."""

    when: Expression | None = None
    """None: always."""
    because: str = ""
    eras: tuple[str, ...] = ()
    forced: Scalar = None
    """The value in force then, whatever is written: another setting decides it."""


class Partners(Strict, frozen=True):
    """Keys that move along with another one; expressions know its `old` and its `new` value."""

    when: Expression | None = None
    sets: dict[str, Expression] = {}
    """Each must come to a whole number from 1 on, or a word; else this form of the change is not possible."""
    given: dict[str, Expression] = {}
    """The same of keys that are left alone where they are not set."""
    keeps_product: bool = False
    """What the key alone would change in the results stays (batch times accumulation)."""
    required: bool = False
    """The key may move only with its partners."""
    says: str = ""
    eras: tuple[str, ...] = ()


class DefaultWhen(Strict, frozen=True):
    """A default that only one program, backend or method has."""

    when: Expression
    default: Scalar | dict[str, Scalar] = None
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
    default_when: tuple[DefaultWhen, ...] = ()
    """Defaults of single programs, backends or methods: the first that holds counts in place of `default`."""
    eras: tuple[str, ...] = ()
    """Eras in which the key exists; () = all."""
    since: str = ""
    """The version that brought it, where its first era began before; an older one of that era does not have it."""
    to_knob: Expression | None = None
    """The knob's value by the key's own, `value`: `value * samples // dp`; None: as it is."""
    from_knob: Expression | None = None
    """The key's value by the knob's; left out where it follows from `to_knob`."""
    words: tuple[str, ...] = ()
    """Values to try where a switch is to change, best first: files that the framework ships, by their names."""
    must: tuple[Constraint, ...] = ()
    """Divisibility and bounds, checked before a value is proposed."""
    with_it: tuple[Partners, ...] = ()
    """Keys that move along when this one does."""
    no_effect_when: tuple[Idle, ...] = ()
    """Reasons why the key does nothing here; the first that holds is told."""
    also: dict[str, Expression] = {}
    """Further knobs the same key carries, as by `to_knob` (swift's --deepspeed: stage and offload)."""
    moves: dict[str, str] = {}
    """phase → gpu, gpu-, host, host-, none (a minus: raising the value lowers it there)."""
    results: Results = "unchanged"
    only_with: Expression | None = None
    """Where this is false, another backend or command of the framework runs, which does not read this key."""
    read_with: Expression | None = None
    """Where this is true the key is read all the same, as something else that is no knob."""
    caveat: str = ""
    false_friend: str = ""
    """What its name leads people to try, and why that does nothing here: said under "not proposed"."""
    source: str = ""
    elsewhere: str = ""
    """What the key is in eras outside `eras`, in words: another switch of the same name, known there and no lever."""
    before: SettingFact | None = None
    """What the same key is in eras outside `eras` (its own `eras` say which), where it is a lever there too."""
    only_in: str = ""
    """The config file, in words, that alone holds the key (accelerate's): no option of the command sets it."""
    yours: str = ""
    """What to look for, in words, where a launch does not set the key: scripts have it, the framework does not."""


class EnvironmentFact(SettingFact, frozen=True):
    """An environment variable; same grain as a setting."""

    reaches_workers_by: str = ""
    """Where it has to be set so that the workers see it."""


class Peculiarities(Strict, frozen=True, kw_only=True):
    """What few frameworks do: a field that is left out says that this one does not, or names what all processes have.
    Bytes are per parameter unless a unit says otherwise."""

    logits_update_row_bytes: float = 0
    """Copies of one row beside bf16 logits, where log-probabilities are taken row by row."""
    logits_forward_row_bytes: float = 0
    logits_update_least_fp32: float = 0
    """The least of both where accelerate hands out the logits in fp32: the cast and its bf16 input, two gradients."""
    logits_forward_least_fp32: float = 0
    whole_gradient_bytes: float = 2
    """Gradients that are reduced after the last pass only (no_sync): those of the whole model, as backward makes them;
    FSDP2 adds them up in fp32."""
    launcher_shards: bool = False
    """What shards the states is the launcher's business (accelerate's file): a configuration alone does not tell it."""
    fused_loss_always: bool = False
    """Log-probabilities are taken in tiles of the head whatever a setting says: full logits are nowhere."""
    gathered_units: int = 2
    """Layers that are there unsharded at once: the one in use, the next, with FSDP2 the buffer it is copied from."""
    fused_loss_scores: bool = False
    """True: the fused loss also serves the passes that only score (verl); elsewhere those still hold full logits."""
    logits_factor_without_deepspeed: float = 1
    """Times both where a run of a `deepspeed` trainer goes without it: accelerate then hands out the logits in fp32."""
    engine_pool: bool = True
    """It sleeps in an allocator's pool of its own (vLLM from 0.7, SGLang), which refuses expandable segments."""
    engine_inside: bool = False
    """The engine runs inside the trainer's process: what another process of the card holds is not the engine's. SGLang
    starts processes of its own wherever it is."""
    expandable_segments: bool = False
    """Torch's segments are expandable while the trainer works, whatever the environment says: it switches them on."""
    sleep_residue_bytes: int = 2_000_000_000
    """Left on the card by a sleeping engine (context, graphs)."""
    sync_wakes: Literal["all", "weights"] = "all"
    """What of a sleeping engine is awake during the weight sync: its whole share, or its weights only."""
    states_sleep: bool = False
    """Optimizer states always leave the card between updates; elsewhere `actor.state_sleep` says."""
    weights_sleep: bool = False
    """The trainer's weights always leave the card between its own phases, too, and are not there when the engine starts
    (ROLL); elsewhere `actor.param_offload` says."""
    pauses_whole: bool = False
    """All that the trainer allocated leaves the card between its phases and is back, as one, for each of them
    (torch_memory_saver); the weight sync reads a copy in host RAM."""
    host_weight_copies: int = 0
    """Copies of a rank's weights that it keeps in host RAM all the time, beside what rests there."""
    masters_stay: bool = False
    """Of the optimizer's state only the moments leave; DeepSpeed's fp32 masters stay on the card."""
    context_bytes: int = 600_000_000
    """CUDA context of one process; 0: the card's own (gpus.yaml)."""
    loads_full_model_per_rank: bool = False
    fixed_buffer_bytes: int = 0
    """Buckets and live-parameter allowances held all the time."""
    host_process_bytes: int = 4_000_000_000
    """Resident memory of one worker process (CUDA, torch, libraries)."""
    source: str = ""
    sync_adapters: bool = False
    """LoRA: only the adapter goes to the engine, through a file, after the base has left the card."""
    adapter_copies: int = 1
    """LoRA adapters on the card: the actor's, and a frozen one as reference."""
    adapter_casts: bool = False
    """Adapters in fp32 on a bf16 base under autocast: every target casts its input. The ledger then counts a layer
    tensor by tensor, and what the allocator's segments lose instead of a fixed part."""
    fused_layers: Literal["never", "dense"] = "never"
    """Norms and MLPs run as fused kernels (Liger): for dense models, whose classes the library knows."""
    experts_are_linear: bool = True
    """False: experts are one fused parameter (transformers 5), which LoRA on all linear layers does not reach."""
    logits_tile_bytes: int = 0
    """Log-probabilities from hidden states in chunks: bytes of one fp32 tile of logits; 0: full logits."""
    moments_after_first_pass: bool = False
    """A step after every pass, moments made by the first: an update of one pass meets none the first time."""
    graphs_inside_share: bool = False
    """CUDA graphs count inside the engine's share (vLLM from 0.21), and a sleeping engine's rest is counted from the
    card, its graphs and its workspaces."""
    engine_outside_bytes: int = 0
    """Bytes an awake engine holds outside its share beside its CUDA context."""
    engine_asleep_bytes: int = 0
    """The same of a sleeping engine."""
    lays_end_to_end: bool = False
    """Rows of a pass are laid end to end without padding unless a setting says otherwise."""
    scores_answers: bool = True
    """The trainer scores the engine's answers once more before it updates; elsewhere their log-probabilities come with
    them, unless `logprob.scored` says otherwise."""
    moments_for_step: bool = False
    """Offloaded moments are back on the card for the optimizer's step alone, not for the whole update."""
    scores_entropy: bool = False
    """Old log-probabilities of full training come with the entropy, whatever the loss asks for (verl)."""
    frozen_tower_keeps: bool = False
    """Inputs of a vision tower's checkpointed layers need gradients though the tower is frozen, so they are kept."""
    packs_samples: bool = False
    """A packed row is filled with whole samples, both answers of a pair among them; elsewhere each answer has its row.
    """
    tensor_splits_stream: bool = False
    """Tensor-parallel ranks of an FSDP trainer always split the stream between the layers, too (sequence parallelism);
    elsewhere `actor.tensor_splits_stream` says."""
    checkpoints: Literal["layer", "pieces", "mlp"] = "layer"
    """What activation checkpointing wraps: a decoder layer, its norms, attention and MLP apart, or the MLP alone."""
    kbit_prepared: bool = False
    """PEFT's prepare_model_for_kbit_training: what of a quantised base is not quantised is cast to fp32, and the stream
    between the layers with it."""
    generates_itself: bool = False
    """Where no setting names an engine there is none: the trainer's own model generates."""
    gathers_to_generate: bool = False
    """The same, and under ZeRO-3 all weights are gathered on every card for it."""
    reference_as_loaded: bool = False
    """Without DeepSpeed the reference stands in the type that the policy is loaded in."""
    fused_loss_fuses_layers: bool = False
    """The switch of the fused loss patches the model's norms and MLP, too (transformers' use_liger_kernel)."""
    transformers_optimizer: bool = False
    """Without DeepSpeed the optimizer is transformers' default: fused AdamW from transformers 4.54, torch 2.8 on."""
    zero2_bucket_bytes: int = 0
    """Buckets that ZeRO's stages 1 and 2 fill with gradients in backward."""
    engine_tokens_a_sequence: int = 0
    """Tokens of an engine step where nothing sets them: so many a sequence, at least one whole context."""


class Mechanics(Peculiarities, frozen=True, kw_only=True):
    """How a framework holds memory: what the ledger needs and no setting says. Bytes are per parameter."""

    trainer: Literal["fsdp", "deepspeed", "megatron", "ddp"]
    weight_bytes: float
    """Sharded weights kept by the trainer (FSDP holds fp32; DeepSpeed bf16)."""
    gradient_bytes: float
    master_bytes: float
    moment_bytes: float
    step_extra_bytes: float
    """Temporaries of the optimizer step (torch foreach 1x fp32 shard; fused 0; ZeRO-3 one sub-group)."""
    unsharded_bytes: float
    """Gathered copy of a unit in forward and backward."""
    reference_bytes: float
    reference_on: Literal["gpu", "host"]
    """host: streamed layer by layer (FSDP CPUOffload)."""
    reference_when: Literal["always", "kl", "kl_full"]
    """Built always, only with a KL term, or only with a KL term and full (not LoRA) training."""
    logits_scope: Literal["prompt_and_response", "response"]
    logits_update_bytes: float
    """Live bytes per token x vocabulary entry at the peak of forward + backward."""
    logits_forward_bytes: float
    """The same in a no-grad pass."""
    engine_share_of: Literal["total", "free"]
    engine_sleeps: bool
    sleep_level: int
    """1 keeps a pinned host copy of the engine's weights, 2 does not, 0: no sleep."""
    wakes_beside: tuple[str, ...]
    """What of the trainer is still on the card when the engine wakes: weights, gradients, master, moments."""
    sync_gathers: Literal["tensor", "unit", "full", "full_to_merge"]
    """What ZeRO-3 gathers at once for the weight sync. full: the whole model, or one of `sync.batches` pieces.
    full_to_merge: so only where adapters are merged for it, else one tensor."""
    offload_lowers_update: bool
    """True: offload is CPU Adam. False (verl): states return to the card for the update."""
    processes_per_gpu: int
    """Processes with a CUDA context on each card (OpenRLHF colocated: one a role)."""


class StatedMechanics(Peculiarities, frozen=True, kw_only=True):
    """The same as a dialect states it: None where it does not say; run/recipe.py fills that and says so. `per_era`
    and `mechanics_when` of the dialect override fields."""

    trainer: Literal["fsdp", "deepspeed", "megatron", "ddp"] | None = None
    weight_bytes: float | None = None
    gradient_bytes: float | None = None
    master_bytes: float | None = None
    moment_bytes: float | None = None
    step_extra_bytes: float | None = None
    unsharded_bytes: float | None = None
    reference_bytes: float | None = None
    reference_on: Literal["gpu", "host"] | None = None
    reference_when: Literal["always", "kl", "kl_full"] | None = None
    logits_scope: Literal["prompt_and_response", "response"] | None = None
    logits_update_bytes: float | None = None
    logits_forward_bytes: float | None = None
    engine_share_of: Literal["total", "free"] | None = None
    engine_sleeps: bool | None = None
    sleep_level: int | None = None
    wakes_beside: tuple[str, ...] | None = None
    sync_gathers: Literal["tensor", "unit", "full", "full_to_merge"] | None = None
    offload_lowers_update: bool | None = None
    processes_per_gpu: int | None = None


class AlgorithmFact(Strict, frozen=True):
    """Where the algorithm is said: by the program, in a key, or always the same."""

    programs: dict[str, str] = {}
    """Program or file of a traceback (fnmatch) → algorithm, where its name does not say it (recipes.yaml)."""
    by_settings: dict[str, Expression] = {}
    """Algorithm → what of the launch's settings only it has, where neither program nor key tells."""
    fixed: str = ""
    """The framework has no other."""
    otherwise: str = "unknown"
    """Where only a log speaks and its frames do not tell."""
    narrowed: dict[str, Expression] = {}
    """Algorithm → when the one that was found (`algorithm`) is this one: a loss type, a task."""
    key: str | tuple[str, ...] = ()
    values: dict[str, str] = {}
    """The framework's word (fnmatch) → ours; a word that is not here stands for itself."""
    default: str = "unknown"
    """Where the key is not set."""


class TopologyFact(Strict, frozen=True):
    """How nodes, GPUs and roles are read from settings, variables and launcher options: an expression a field.
    Expressions know each other by name, what `let` defines, `machine.nodes` and `machine.gpus` (of one node)."""

    let: dict[str, Expression] = {}
    counted_by: tuple[str, ...] = ()
    """Keys, options (--nnodes) and variables ($NNODES) that count GPUs."""
    unread_is_all: bool = False
    """Where one of them is set and cannot be read, all GPUs of the machine are taken; said as an assumption."""
    each_card: Expression | None = None
    """Where the program itself starts a process on each visible card unless it is told a number."""
    nodes: Expression | None = None
    gpus_per_node: Expression | None = None
    actor_gpus: Expression | None = None
    """None: nodes * gpus_per_node."""
    rollout_gpus: Expression | None = None
    """None: as many as the actor's."""
    tensor_parallel: Expression | None = None
    sequence_parallel: Expression | None = None
    model_parallel: Expression | None = None
    actor_tensor_parallel: Expression | None = None
    engine_elsewhere: Expression | None = None
    """The rollout engine is another command's, on cards of which this launch says nothing."""
    process_gpus: Expression | None = None
    """GPUs over which one process lays the layers (device_map); None: one."""
    critic_gpus: Expression | None = None
    reference_gpus: Expression | None = None
    asked: Expression | None = None
    asked_per_node: Expression | None = None
    reserved: Expression | None = None
    """GPUs of all nodes that the launch says there are, where its roles count theirs apart."""
    colocated: Expression | None = None
    roles_share_cards: Expression | None = None
    reference_beside_actor: Expression | None = None
    known: Expression | None = None
    reward_on: Expression | None = None
    """none, actor, critic, own or host."""


class MechanicsWhen(Strict, frozen=True):
    """What holds of memory while a backend, a command or an algorithm is chosen."""

    when: Expression
    set: dict[str, Scalar | list[str]] = {}
    """Fields of StatedMechanics."""
    unread: str = ""
    """What is chosen, in words, where nobody has read how it holds memory: nothing is predicted then."""
    note: str = ""
    source: str = ""


class ShownByFrame(Strict, frozen=True):
    """What a frame of the traceback proves of settings: code of a backend runs only where that one was chosen."""

    frame: str
    """Regex over "path/file.py:function"."""
    sets: dict[str, Scalar]
    """Native key → the value it must have."""
    source: str = ""


class WorstFirst(Strict, frozen=True):
    """How a trial of few steps meets the longest rows first, instead of hours later."""

    set: dict[str, Scalar]
    """Native keys and their values for the trial."""
    says: str
    """What makes it the worst batch, and what of the data is to be put in order."""
    when: Expression | None = None
    eras: tuple[str, ...] = ()
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
    serves_others: bool = False
    """Other frameworks are built on the package: that somebody names its version does not tell what was run."""
    on_ray: bool = False
    """What rolls out is always a job of Ray."""
    algorithm: AlgorithmFact = AlgorithmFact()
    eras: tuple[Era, ...] = ()
    settings: dict[str, SettingFact] = {}
    renamed: dict[str, str] = {}
    """Older key → its newer name; read both ways, for a setting that the era in force does not have."""
    environment: dict[str, EnvironmentFact] = {}
    must: tuple[Constraint, ...] = ()
    """Constraints over several keys."""
    topology: TopologyFact | None = None
    """None: all GPUs of the machine train together."""
    mechanics: StatedMechanics = StatedMechanics()
    per_era: dict[str, dict[str, Scalar | list[str]]] = {}
    """era id → fields of StatedMechanics that differ."""
    config_defaults: dict[str, dict[str, Scalar | dict[str, Scalar]]] = {}
    """Name of a configuration of the framework's own (fnmatch, as in --config-name), one of its groups with the option
    chosen (model_engine=megatron), or a YAML file of its source tree that a launch may name → key → its value there, or
    era id → value. The file counts where it was not found."""
    own_config: dict[str, str] = {}
    """Program (fnmatch, the first that fits) → the YAML file of the source tree that it reads where the command names
    none: not known without `config_defaults`. "": the one whose values are the defaults here; "?": one of its own."""
    mechanics_when: tuple[MechanicsWhen, ...] = ()
    frames: tuple[FrameRule, ...] = ()
    shown_by_frames: tuple[ShownByFrame, ...] = ()
    progress: tuple[Progress, ...] = ()
    resume: tuple[Resume, ...] = ()
    worst_first: tuple[WorstFirst, ...] = ()
    """The first that holds counts."""
    notes: tuple[str, ...] = ()
    always_set: tuple[tuple[str, ...], ...] = ()
    """Settings that every launch states, one of each group: it does not start without. A launch that lacks one was
    quoted in part, so what it leaves out is not known to be at its default."""
    beside_file: dict[str, Literal["options", "assignments", "additions", "dashes", "nothing"]] = {}
    """Era id ("*" for the others) → how the command takes what it does not have yet, beside a config file: as options,
    as key=value, as ++key=value where the file lacks the key, as --kebab-case where the file cannot be changed. {}: as
    the syntax says; "yaml" takes nothing."""
    kept_in_yaml: bool = False
    """Its documentation keeps settings in a YAML file: so are keys written for a run of which no launch was given."""
    checkout: tuple[str, ...] = ()
    """Files of its source tree, from the root, that state its version; pyproject.toml is looked at anyway."""
    part_of: str = ""
    """The framework whose other programs this describes: what the run is called in JSON."""
    newest_read: NewestRead | None = None
    """A dialect whose newest era has no end needs it: what is newer is answered with a doubt."""
    source: str = ""

    @property
    def takes_options(self) -> bool:
        """Whether a command of it takes `--key value`; what no program is known by is a Python file of the user's."""
        return self.syntax == "argparse" and any(mark.programs for mark in self.recognised_by)
