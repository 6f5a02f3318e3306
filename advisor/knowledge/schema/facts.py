"""Types models, gpus, knobs, recipes, data_sets and starts.yaml, and how a framework resumes."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.knowledge.schema.base import Scalar, Strict
from advisor.rules.expression import Expression


class ModelSizes(msgspec.Struct, frozen=True):
    """A model's geometry, as models.yaml has it and as a run has it. Counts are of the text model unless `vision_*`."""

    name: str
    parameters: int
    """Text and vision together; of a fact the published count."""
    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    vision_parameters: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    remembered: bool = False
    """Neither its config.json nor a copy of it was read: widths and layers are from memory, and only the parameters
    that they come to were compared with the published count."""
    dense_layers: int = 0
    """Leading layers of a mixture-of-experts model whose MLP is dense, `intermediate` wide."""
    shared_intermediate: int = 0
    """Width of the experts that every token passes (all of them together)."""
    per_layer_input: int = 0
    """Width of the per-layer embeddings: a second table, one vector a layer and token (Gemma 4 E2B, E4B)."""
    global_layers: int = 0
    """Layers of full attention among those of a sliding window, where their heads are `global_head_dim` wide."""
    global_head_dim: int = 0
    shared_kv_layers: int = 0
    """Last layers that reuse the keys and values of an earlier layer and have none of their own (Gemma 4)."""
    shared_kv_globals: int = 0
    """Layers of full attention among those."""
    wide_layers: int = 0
    """Layers whose MLP is twice `intermediate` wide (Gemma 4 E2B: those that share keys and values)."""
    engine_heads_dropped: int = 0
    """Matrices of vocabulary x hidden that vLLM makes for a tied head and drops: they stay in its pool."""
    served_bits: int = 0
    """Bits of a weight as an engine serves the published checkpoint, which trainers turn into bf16 (FP8, MXFP4); 0: it
    is published in 16 bits."""
    stored_bits: int = 0
    """Bits of a weight of a checkpoint that stays packed under adapters, too (AWQ, GPTQ, bitsandbytes)."""
    gated_attention: bool = False
    """The query projection makes a gate for the output, too (Qwen3-Next, Qwen3.5)."""
    linear_layers: int = 0
    """Layers of linear attention (gated delta rule) among `layers`: they keep a state, and no keys and values."""
    linear_key_width: int = 0
    """Theirs: key heads x key dimension."""
    linear_value_width: int = 0
    """Theirs: value heads x value dimension."""
    linear_heads: int = 0
    """Theirs: value heads."""
    gated: bool = True
    """The MLP has a gate: three matrices a layer; without one there are two (GPT-2, OPT, BERT, T5)."""
    cross_layers: int = 0
    """Layers of the decoder that attend to an encoder, too; the encoder's are the rest of `layers` (T5, Whisper)."""
    context: int = 0
    """Tokens of the longest row that the model takes; 0: more than people train on, or not known."""


class ModelFact(ModelSizes, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A published model: its geometry, the names it goes by, and where that was read."""

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
    biases: bool = False
    """Every linear layer and every norm has a bias."""
    beside: int = 0
    """Parameters that the widths do not tell: learned positions, poolers, convolutions before the first layer."""

    @property
    def repository(self) -> str:
        """Where it is published, "Qwen/Qwen3-32B", where its source begins with that; else ""."""
        first = self.source.partition(" ")[0]
        return first if first.lower().endswith(f"/{self.name.lower()}") else ""


class GpuFact(Strict, frozen=True):
    """A card: names it goes by, and what the driver reports as its memory."""

    name: str
    aliases: tuple[str, ...]
    total_bytes: int
    context_bytes: int | None = None
    vendor: Literal["nvidia", "amd", "ascend"] = "nvidia"
    unified: bool = False
    """Its memory is the host's."""
    bf16: bool = True
    """Computes in bf16, and FlashAttention 2 runs on it."""
    boxes: dict[str, int] = {}
    """Instance of a cloud, or a maker's box with a name → how many of these cards it has."""
    source: str = ""


class NotInForce(Strict, frozen=True):
    """What a knob comes to where a launch sets it and nothing follows, and how a user sees whether it does."""

    knobs: dict[str, Scalar]
    """It and whatever goes with it."""
    says: str
    """A clause: "the loss makes full logits"."""
    check: str


class Instead(Strict, frozen=True):
    """What a knob may be where no launch states it, and the sums say that it is not as it is taken."""

    knobs: dict[str, Scalar]
    """It and whatever goes with it."""
    says: str
    """A clause: "weights kept in bf16"."""


class Constraint(Strict, frozen=True):
    """What a framework, or a library below it, demands of settings."""

    holds: Expression
    says: str = ""
    """The sentence for the user where it does not hold; "": made of the expression."""
    eras: tuple[str, ...] = ()
    """Eras that check it; () = all."""
    source: str = ""


class KnobFact(Strict, frozen=True):
    """A canonical knob: one vocabulary for remedies, tree and ledger."""

    id: str
    title: str
    unit: str
    type: Literal["int", "float", "bool", "str"]
    says: str = ""
    spelled: str = ""
    """How launches without a dialect spell it: a regular expression over the last part of a key."""
    by_word: str = ""
    """As `spelled`, of keys that tell a switch by a word: `mixed_precision: bf16`."""
    counted: bool = True
    """False: nothing of the ledger depends on it; an estimate of a run that sets it says so."""
    not_in_force: NotInForce | None = None
    """None: a launch that sets it has it."""
    instead: tuple[Instead, ...] = ()
    """What it may be where no launch states it, the likeliest first."""
    must: tuple[Constraint, ...] = ()
    """What libraries below every framework demand of it, whatever key carries it."""


class NewestRead(Strict, frozen=True):
    """Up to where a dialect was read upstream: a release, the commit where more or nothing is released, its date."""

    date: str
    """Of that release or commit, of the reading where a package has none: 2026-09-20."""
    version: str = ""
    commit: str = ""

    @property
    def name(self) -> str:
        """The release, else the commit."""
        return self.version or self.commit

    @property
    def month(self) -> str:
        return self.date[:7]


class DataSetFact(Strict, frozen=True):
    """A published data set, by the tokens of its rows."""

    name: str
    rows: int
    mean: float
    """Tokens of a row; images are not counted."""
    longest: int
    also: str = ""
    """Its name at another hub."""
    images: bool = False


class RecipeFact(Strict, frozen=True):
    """A training method: which models it needs, which passes, and what its loss holds."""

    id: str
    title: str
    answers: Literal["generated", "given", "unknown"]
    """Whether answers are rolled out, or stand in the data: then there is no engine, and one length counts both."""
    rows: int = 1
    """Rows of a pass that one sample of the micro-batch makes: 2 for a better and a worse answer."""
    scored_rows: int = 0
    """Rows of a sample that are only scored, in a pass of their own without gradients (KTO's mismatched answers)."""
    reference: bool = True
    """It may compare with a frozen copy; the framework's mechanics say when one is built."""
    critic: bool | None = False
    """None: nothing tells."""
    teacher: bool = False
    """A second model scores the answers."""
    words: tuple[str, ...] = ()
    """Words of a program's name that tell the method, in any order; of several that fit, the most words tell."""
    spelled: str = ""
    """Regular expression of settings (the last part of a key) that only such a run has, whoever wrote its program."""
    head: Literal["vocabulary", "score", "none"] = "vocabulary"
    """What stands in place of the language head; without one there are no logits and no weights of it."""
    loss: Literal["log_probs", "tokens", "distributions"] = "log_probs"
    """tokens: a plain loss, so that evaluation takes it, too; distributions: of two models, over the vocabulary."""
    source: str = ""


class Agreement(Strict, frozen=True):
    """A key of a file beside the trainer's own settings that the trainer stops at unless both say the same."""

    key: str
    of: tuple[str, ...]
    """The trainer's settings whose product it must be."""
    processes: bool = False
    """Times the processes of all nodes."""


class ConfigFile(Strict, frozen=True):
    """A kind of file beside a training's own config."""

    id: str
    program: str
    """Who reads it."""
    has: tuple[str, ...]
    """What stands at the top of every such file."""
    prefix: str = ""
    """What stands before its keys where a launch names it."""
    frameworks: tuple[str, ...] = ()
    """Those whose trainer compares it with its own settings."""
    agrees: tuple[Agreement, ...] = ()
    replaces: str = ""
    """The table of it whose values are options that its program gives other values."""
    source: str = ""


class Start(Strict, frozen=True, kw_only=True):
    """A starting script that a framework documents, for a run of which there is no script yet."""

    id: str
    framework: str
    method: str
    """A recipe's word."""
    version: str
    """Of the framework: whose script it is."""
    files: dict[str, str]
    """File name → text; the first is the launch. {model}, {nodes}, {gpus}, {all}, {half}, {tensor}, {engines} stand for
    what is asked for."""
    tensor: int = 1
    """GPUs of one rollout engine, as the script has it; a node with fewer gives all of its own."""
    source: str


class Resume(Strict, frozen=True, kw_only=True):
    """One way to save and to start again; of several the first counts whose era and condition hold."""

    eras: tuple[str, ...] = ()
    """Eras in which it is so; () = all."""
    when: Expression | None = None
    """None: always."""
    defaults: dict[str, Scalar] = {}
    """Keys that are no levers, so no settings of the dialect, and their defaults."""
    every: Expression | None = None
    """Steps between two checkpoints; below 1, or none: it saves none that a run could start from."""
    unit: Literal["steps", "epochs"] = "steps"
    folder: tuple[str, ...] = ()
    """Where they go, {key} standing for a setting's value: the first of which all keys are known."""
    checkpoint: tuple[str, ...] = ()
    """How one is called in the folder, {step} standing for its number: "global_step_{step}"; may hold *."""
    latest: str = ""
    """A file of the folder that names the last complete one, written after it; "": the highest number counts."""
    latest_step: str = "(\\d+)"
    """Regex of the number in `latest`."""
    complete: tuple[str, ...] = ()
    """Files (globs) without which a checkpoint is not whole."""
    by_itself: Expression | None = None
    """Whether the same command starts again from the last checkpoint; None: it does not."""
    in_program: str = ""
    """Regex of a program's text that shows that it starts from its last checkpoint."""
    saves: dict[str, Scalar] = {}
    """Settings with which it would save."""
    resumes: dict[str, Scalar] = {}
    """Settings with which it would start again from {checkpoint} in {folder}; {}: no setting does that."""
    fixed: tuple[str, ...] = ()
    """Knobs (fnmatch) that must stay as they were when the checkpoint was written."""
    says: str = ""
    """What is lost, or why nothing resumes, as a sentence."""
    source: str
