"""Defines the run as ledger, tree and remedies see it: canonical knobs bound to the native settings that set them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from advisor.knowledge.schema import Mechanics, ModelSizes, NewestRead, RecipeFact, Scalar
from advisor.regex import regex
from advisor.run.recipe import recipe_of
from advisor.script.document import Setting
from advisor.words import Basis

_CHOOSES_FSDP = regex(r"distributed_type$|fsdp")
"""Keys that stand for ZeRO's stage where FSDP shards."""
KnobValue = int | float | bool | str
KnobSource = Literal["script", "environment", "log", "default", "user", "derived", "assumed"]


class Knob(Struct, frozen=True, gc=False):
    """A canonical knob's value in the knob's own unit, and what gave it. `value` is None where the setting exists but
    could not be resolved."""

    name: str
    value: KnobValue | None
    source: KnobSource
    key: str = ""
    """The native setting that carries it; "" where none does."""
    note: str = ""
    """How the native value became this one: "(160 // 4) * 32"."""
    times_samples: bool = False
    """The native value counts prompts: the samples of each are multiplied in."""
    unread: bool = False
    """The launch sets it to what nobody could resolve: a variable of elsewhere, an argument of a program."""

    @property
    def basis(self) -> Basis:
        """An assumed input makes whatever rests on it estimated."""
        return "estimated" if self.source == "assumed" else "computed"


class ModelShape(ModelSizes, frozen=True):
    """Geometry of the model of a run, and where it comes from."""

    kv_bytes_per_token: int = 0
    """bf16, TP 1, all layers."""
    basis: Basis = "computed"
    note: str = ""
    """Where the shape comes from: "models.yaml", "config.json of …", "estimated from '7B' in the name"."""
    head_norm: bool = False
    """Queries and keys are normed."""

    @property
    def passed(self) -> int:
        """Layers that one token passes: those of encoder or decoder, where there are both."""
        return self.cross_layers or self.layers

    @property
    def mlp_matrices(self) -> int:
        return 3 if self.gated else 2


RewardPlace = Literal["none", "actor", "critic", "own", "host"]


class Topology(Struct, frozen=True):
    """Which GPUs do what. Counts are GPUs in the whole job unless they say otherwise."""

    nodes: int = 1
    gpus_per_node: int = 1
    actor_gpus: int = 1
    """The group that shards and trains the actor."""
    rollout_gpus: int = 1
    """GPUs that host rollout engines."""
    tensor_parallel: int = 1
    """Of the rollout engine."""
    sequence_parallel: int = 1
    colocated: bool = True
    """Rollout engine and actor share cards."""
    roles_share_cards: bool = True
    """Critic, reference and reward live on the actor's cards."""
    reference_beside_actor: bool = False
    """The reference lives on the actor's cards even where the other roles do not."""
    reward_on: RewardPlace = "none"
    """Whose cards a reward model of this job shares; none: there is none, or it is a service elsewhere."""
    known: bool = True
    """False: GPU counts were assumed."""
    assumed: str = ""
    """What was assumed in place of a count that the launch sets but nobody can read, in words."""
    asked: int | None = None
    """GPUs that the launch itself asks for at the least; None where it does not say."""
    reserved: int | None = None
    """GPUs of all nodes that the launch itself says there are, beside what its roles ask for."""
    asked_per_node: int | None = None
    model_parallel: int = 1
    """GPUs that see the same data: in Megatron tensor x pipeline x context parallel, under FSDP tensor parallel."""
    actor_tensor_parallel: int = 1
    """GPUs that split every matrix of an FSDP actor, where the topology says so (AReaL's "fsdp:d4t2")."""
    engine_elsewhere: bool = False
    """The rollout engine is another command's, on cards of which this launch says nothing."""
    process_gpus: int = 1
    """GPUs over which one process lays the layers of its model (device_map)."""
    critic_gpus: int | None = None
    """GPUs of a critic that has cards of its own; None: as many as the actor's."""
    reference_gpus: int | None = None
    """The same of a reference model."""

    @property
    def counted(self) -> int | None:
        """GPUs that the launch asks for, or lets its processes see; None where it does not say."""
        seen = self.actor_gpus * self.process_gpus
        return self.asked if self.asked is not None or not self.known or seen < 2 else seen

    @property
    def data_parallel(self) -> int:
        """Actor ranks that see different data."""
        return max(1, self.actor_gpus // max(1, self.sequence_parallel * self.model_parallel))


RecognisedFrom = Literal["script", "log", "user"]


class UnknownKey(Struct, frozen=True):
    """A key as the launch writes it, and the one that may be meant; "" where none is like it."""

    key: str
    meant: str = ""


class Unread(Struct, frozen=True):
    """A file that would say how the training states are sharded, and what is taken for it."""

    file: str
    key: str
    """The option that names it: "--config_file"."""
    absent: str
    """"was not found", or "was not given" where nobody looked for it."""
    choice: str = ""
    """A Sharding's id; "": nothing suggests one."""
    title: str = ""
    told_by: Literal["name", "option", "user", "sums", "nothing"] = "nothing"
    """option: only one kind of sharding has such a file. sums: the log's sizes fit it."""
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    """Ids of what such a file can choose."""
    against: str = ""
    """A frame of the log's traceback that speaks against the choice: "operations.py convert_to_fp32"."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Keys of the file that mark the choice."""


class Run(Struct, frozen=True):
    """One training run. `knobs` hold what is known, with defaults of the era filled in and marked so."""

    framework: str
    """The contract's word; "unknown" where no dialect fits."""
    title: str
    era: str
    algorithm: str
    """grpo, ppo, reinforce_plus_plus, rloo, … ; "unknown"."""
    model: ModelShape | None
    model_name: str
    topology: Topology
    knobs: Mapping[str, Knob]
    mechanics: Mechanics
    settings: tuple[Setting, ...] = ()
    """Every native setting, in order of precedence, as the script and the log have them."""
    notes: tuple[str, ...] = ()
    recognised_by: str = ""
    """What told the framework: "program verl.trainer.main (run.sh:6)"."""
    recognised_from: RecognisedFrom = "script"
    missing_files: tuple[str, ...] = ()
    """Config files that decide settings of the run and were not found; what they set is unknown."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    era_assumed: bool = False
    """Nothing told the era: neither a version nor the settings."""
    era_guessed: bool = False
    """Only what is usual tells it: other libraries, the days of the log, or nothing."""
    unread: Unread | None = None
    """A missing file that alone would say how the states are sharded, and what is taken for it."""
    uncounted: tuple[str, ...] = ()
    """Keys the launch sets that move GPU memory and that nothing which is computed depends on."""
    assumed_mechanics: tuple[str, ...] = ()
    """Fields of `mechanics` that nobody states: they are what is usual for this kind of trainer."""
    doubts: tuple[str, ...] = ()
    """What missing files and a version that nobody read leave in doubt, a sentence each."""
    part_of: str = ""
    """The framework whose program this is, where its dialect is another one; "" for the framework's own."""
    undescribed: str = ""
    """Why nothing says how the run holds memory, in words: no dialect and no run file, or a backend nobody has read."""
    unknown_keys: tuple[UnknownKey, ...] = ()
    """Keys of the launch that no version of the framework has."""
    newest_read: NewestRead | None = None
    """Up to where the dialect was read upstream; None: it has no releases, or there is no dialect."""
    told_first: tuple[str, ...] = ()
    """Sentences on the launch as a whole: what its text loses, cards that it leaves idle. They are among the notes."""
    lost: tuple[str, ...] = ()
    """Those of them that tell what the program was not given, although the text holds it."""
    maybe_lost: tuple[str, ...] = ()
    """That of them on the only line that ends the command too early: the file that ran may be so, too."""
    launcher_unseen: bool = False
    """A configuration or a program was given without the command that starts it, which would say what shards states."""
    quoted: bool = False
    """Only a part of the launch was given."""
    no_launch: str = ""
    """What a script that was given starts in place of a training that is known here, in words; "" elsewhere."""
    unsharded: str = ""
    """What starts a process per card where a launch without a dialect names nothing that shards; "" elsewhere."""
    seen_whole: bool = False
    """The whole launch was read, so what it leaves out is at the framework's default."""
    unlimited_rows: bool = False
    """No setting limits the rows of the data."""

    def value(self, knob: str) -> KnobValue | None:
        """The knob's value; None where unknown."""
        found = self.knobs.get(knob)
        return None if found is None else found.value

    def number(self, knob: str) -> float | None:
        """The knob as a number; None where unknown or not a number."""
        found = self.value(knob)
        return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    def is_on(self, knob: str, default: bool = False) -> bool:
        """A boolean knob; `default` where unknown."""
        found = self.value(knob)
        return found if isinstance(found, bool) else default

    critic_model: ModelShape | None = None
    """The critic's own shape, where the launch names another model for it; None: it is as large as the actor."""

    @property
    def unlimited_pictures(self) -> bool:
        """Whether nothing limits the pixels of a picture that the model sees: the sums count ones of a usual size."""
        sees = self.model is not None and self.model.vision_parameters > 0
        return sees and self.number("data.max_pixels") is None

    @property
    def trains_adapters(self) -> bool:
        """Whether adapters are trained in place of the model's own weights."""
        full = self.value("actor.full_finetuning")
        return full is False or (full is not True and bool(self.number("actor.lora_rank")))

    @property
    def by_fsdp(self) -> str:
        """What chooses FSDP where the framework may train with DeepSpeed as well; "" where nothing does."""
        if self.mechanics.trainer == "deepspeed" and self.unread is not None and self.unread.choice == "fsdp":
            return f"{self.unread.key} {self.unread.file}"
        stage = self.knobs.get("actor.zero_stage") if self.mechanics.trainer == "deepspeed" else None
        chosen = stage is not None and stage.value is not None and _CHOOSES_FSDP.search(stage.key)
        return f"{stage.key} = {stage.value}" if stage is not None and chosen else ""

    @property
    def recipe(self) -> RecipeFact:
        return recipe_of(self.algorithm)

    @property
    def has_critic(self) -> bool:
        """PPO with a value model."""
        return self.is_on("critic.present", bool(self.recipe.critic))

    @property
    def has_reference(self) -> bool:
        return self.is_on("reference.present", self.recipe.reference)


_EVALUATES = regex(r"^do_(?:predict|eval)$|^predict_with_generate$")
"""Switches of transformers' scripts for a run that only evaluates, where do_train is not on beside them."""
_TRAINS = regex(r"^do_train$|^num_train_epochs$|^max_steps$|^learning_rate$")
_OFF = frozenset(("", "0", "false", "no", "none", "null"))


def evaluates_only(run: Run) -> str:
    """The setting that makes it a run which only evaluates, as it stands; "" where it trains or nobody knows."""
    found = stated(run, _EVALUATES)  # which few runs have
    return "" if not found or stated(run, _TRAINS) else found


def stated(run: Run, names: re.Pattern[str]) -> str:
    """The first setting of such a name that is not switched off, as it stands; "" where there is none."""
    own = ((one, one.key.lstrip("-+").replace("-", "_").lower()) for one in run.settings)
    found = (f"{one.key} {one.text}" for one, key in own if names.search(key) and one.text.lower() not in _OFF)
    return next(found, "")
