"""Draws facts from the frames of the failing traceback: what was being allocated, and in whose code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.crash.evidence import Crash, Frame
from advisor.crash.phase import frame_words
from advisor.crash.tracebacks import ATTENTION, LOADS, LOGITS, NEAREST, gathers, scores
from advisor.diagnosis.fact import Fact
from advisor.hostile import clean_line
from advisor.regex import regex

LOGITS_CAST = regex(r"^(?:float_conversion|float16_to_fp32)$")
"""Megatron's Float16Module casts the logits of the last stage to fp32 at once (core/transformer/module.py)."""
ATTENTION_CODE = regex(r"(?:^|/)(?:flash_attn\w*interface|flash_attention|sdpa_attention|xformers/ops/fmha)[/.]")
ATTENTION_FUNCTION = regex(r"^_?flash_attn_\w+|^scaled_dot_product_attention$|^memory_efficient_attention\w*$")
"""Files and functions of the libraries that compute attention (flash-attn, xformers, torch, transformers)."""
GATHERS_ALL = regex(r"\b(?:unwrap_model_for_generation|summon_full_params|GatheredParameters)\b")
"""Contexts that hold the whole model gathered while they last (TRL, FSDP, DeepSpeed)."""
GENERATES = regex(r"generat|rollout", re.IGNORECASE)
"""Functions and contexts that produce completions."""
BUCKET = regex(r"(?:reduce|all_?gather|prefetch)_bucket_size|ipg_buffer|_bucket_(?:size|buffer)|flatten_dense_tensors")
"""DeepSpeed's and Megatron's communication buffers, in the source line that allocates one."""
BUCKET_FUNCTION = regex(r"ipg_bucket|allreduce_bucket|reduce_bucket|_reduce_.*bucket|allocate_bucket|flatten_bucket")
PASS = regex(r"^(?:forward|backward|\w*call_impl|\w*run_backward|checkpoint)$")
"""Functions of torch that compute a pass of the model or its gradients; nothing is loaded inside them."""
PASS_CODE = regex(r"(?:^|/)transformers/activations\.py$")
"""Code that does nothing else, whatever its functions are called."""
CALLS_MODEL = regex(
    r"^(?!\s*(?:self\.)?(?:\w*model\w*|policy|net|actor)\s*=).*\b(?:self\.)?(?:ref_|reward_|reference_)?"
    r"(?:model|policy|net|actor|critic)\((?:\*|\w*input|batch|x\b|tokens|ids|obs|samples|data\b|concat)"
)
"""Source lines of a program's own that run a model on a batch."""
MATMUL = regex(
    r"\bF\.linear\(|\btorch\.(?:_C\._nn\.linear|matmul|mm|bmm|addmm|baddbmm|einsum)\(|\w @ \w|dispatch_unquantized_gemm"
)
MATMUL_FUNCTION = regex(r"^(?:linear|matmul|mm|bmm|addmm|baddbmm|einsum|\w*_gemm)$")
MATMUL_CODE = regex(r"/(?:linear|vocab_parallel_embedding|lm_head)\.py$")
"""Source lines, functions and files (torch, vLLM, SGLang) whose work is one matrix product of cuBLAS."""
DEEPSPEED = "/deepspeed/runtime/zero/"
MAKES_STATES = regex(
    r"^(?:_configure_zero_optimizer|_create_fp(?:16|32)_partitions\w*|_create_param_groups_\w+|initialize_optimizer_states)$"
)
"""DeepSpeed's functions that make master weights and moments, once the weights are loaded."""
PINS = regex(r"""\.to\(\s*\\?["']cpu\\?["'] *,.*non_blocking\s*=\s*True|\bpin_memory\b|cudaHostAlloc|\bpinned\b""")
"""Source lines and functions that take page-locked host memory: CUDA reports its refusal as its own "out of memory"."""
WAKES = regex(r"^(?:wake_up|resume_memory\w*|_?resume_\w*|create_and_map|_?allocate_kv_cache\w*|backload\w*)$")
"""Functions that take an engine's memory back (vLLM, SGLang)."""
STARTS = regex(r"initialize_kv_cache|from_engine_args")
"""Functions of an engine that starts: they take its memory for the first time."""
ENGINE_WEIGHTS = regex(r"^(?:load_model|_?initialize_model|create_weights|get_model|process_weights_after_loading)$")
ENGINE_MEASURES = regex(r"profile|warm_?up|_dummy_\w*run|captur|initialize_kv_cache|determine_\w*available|wake_up")
"""Functions of an engine that make its weights; and what it does once they are there."""
COLLECTS = regex(r"^(?:nested_(?:concat|gather|truncate)|torch_pad_and_concatenate|distributed_concat)$")
"""Functions of transformers' Trainer that put together what an evaluation keeps of every pass (trainer_pt_utils.py)."""
DATA_PARALLEL = regex(r"torch/nn/parallel/(?:data_parallel|replicate|parallel_apply|scatter_gather)\.py$")
"""torch's DataParallel: one process that keeps a whole copy of the model on every card."""
TO_CARD = regex(
    r"""\.cuda\(|\.to\(\s*(?:device\s*=\s*)?(?:[\w.]*(?:device|rank|gpu)\w*(?:\(\))?|torch\.device\(.*|f?["'](?:cuda|npu)[^"']*["'])\s*[,)]"""
)
"""Source lines of a program's own that put a whole model on a card."""
MOVES, MOVING = "torch/nn/modules/module.py", ("convert", "<lambda>", "_apply", "cuda", "npu")
PACKS = regex(r"(?:^|/)bitsandbytes/\S*:(?:\w+\.)?(?:_quantize|quantize_(?:4bit|nf4|fp4)|int8_double_quant)$")
"""bitsandbytes's functions that pack a layer as it comes to the card (nn/modules.py, functional.py)."""
TORCH_ASKS = regex(
    r"\btorch\.(?:empty|zeros|ones|full|rand|randn|tensor|cat|stack)\w*\(|\.(?:contiguous|clone|new_(?:empty|zeros|ones))\("
)
"""Source lines in which torch itself takes memory; of a copy to the CPU they say nothing."""
READS = regex(r"(?:^|/)torch/serialization\.py$")
"""torch's code that moves a module, and that reads a checkpoint."""
TRAINS = regex(
    r"\binner_training_loop\b|\btrainer\.train\(|\btrain(?:ing)?_(?:one_)?(?:step|epoch|batch|iter)\b|\b_?loss_(?:fn|step)\b"
)
"""Functions and source lines of a training loop: whatever was loaded was loaded before."""
ENGINES = ("vllm", "sglang")


def frame_facts(frames: Sequence[Frame]) -> dict[str, Fact]:
    """frame.attention, .collects, .pass, .matmul, .pins, .makes_states, .gather(s_all), .bucket, .wakes, .loads,
    .data_parallel, .to_card, .torch_load, .trains, .logits, .engine(_weights).

    `frames`: not empty.
    """
    gathering = [frame for frame in frames if gathers(frame)]
    near = list(reversed(frames[-NEAREST:]))
    product = next((frame for frame in near if _is_product(frame)), None)
    starts = any(STARTS.search(frame.function) for frame in frames)
    facts = {
        "frame.gather": _true(gathering[-1]) if gathering else Fact(False, "log", frame_words(frames[-1])),
        "frame.pass": _pass(frames),
        "frame.matmul": _true(product) if product is not None else Fact(False, "log", frame_words(frames[-1])),
    }
    for name, found in {
        "frame.gathers_all": _gathers_all(frames),
        "frame.bucket": next((frame for frame in near if _is_bucket(frame)), None),
        "frame.wakes": next((one for one in reversed(frames) if not starts and WAKES.match(one.function)), None),
        "frame.engine_weights": _makes_weights(frames),
        "frame.attention": next((frame for frame in near if _is_attention(frame)), None),
        "frame.collects": next((frame for frame in near if _collects(frame)), None),
        "frame.pins": next((frame for frame in near if PINS.search(f"{frame.function} {frame.text}")), None),
        "frame.makes_states": next((frame for frame in reversed(frames) if MAKES_STATES.match(frame.function)), None),
        "frame.data_parallel": next((frame for frame in frames if DATA_PARALLEL.search(frame.file)), None),
        "frame.to_card": _puts_on_card(frames),
        "frame.torch_asks": next(
            (one for one in frames[-1:] if TORCH_ASKS.search(one.text) or TO_CARD.search(one.text)), None
        ),
        "frame.packs": next((one for one in reversed(frames) if PACKS.search(_path(one))), None),
        "frame.torch_load": next((frame for frame in reversed(frames) if _reads(frame)), None),
        "frame.trains": next((one for one in frames if TRAINS.search(f"{one.function} {one.text}")), None),
        "frame.loads": next((frame for frame in reversed(frames) if LOADS.match(frame.function)), None),
    }.items():
        if found is not None:
            facts[name] = _true(found)
    return {**facts, **_scoring(frames), **_engine(frames)}


def source_facts(text: str, line: int) -> dict[str, Fact]:
    """The same of a source line whose frame is not there: only what it shows."""
    found = frame_facts([Frame("", 0, "", line, text)])
    return {name: fact for name, fact in found.items() if fact.value is not False}


def _path(frame: Frame) -> str:
    return f"{frame.file}:{frame.function}".replace("\\", "/")


def _true(frame: Frame) -> Fact:
    return Fact(True, "log", frame_words(frame))


def _gathers_all(frames: Sequence[Frame]) -> Frame | None:
    """The frame that gathers the whole model in order to generate with the trainer's own copy."""
    holding = [frame for frame in frames if GATHERS_ALL.search(f"{frame.function} {frame.text}")]
    generating = any(GENERATES.search(f"{frame.function} {frame.text}") for frame in frames)
    return holding[-1] if holding and generating else None


def _is_bucket(frame: Frame) -> bool:
    ours = DEEPSPEED in frame.file or "/megatron/" in frame.file
    return BUCKET.search(frame.text) is not None or (ours and BUCKET_FUNCTION.search(frame.function) is not None)


def _pass(frames: Sequence[Frame]) -> Fact:
    """Whether the trainer's model was computing when it failed; an engine computes while it starts, too."""
    within = next((frame for frame in reversed(frames) if _computes(frame)), None)
    loading = any(LOADS.match(frame.function) for frame in frames)
    if within is None or loading or _engine(frames):
        return Fact(False, "log", frame_words(frames[-1]))
    return _true(within)


def _computes(frame: Frame) -> bool:
    saves = frame.function == "checkpoint" and not frame.file.endswith("utils/checkpoint.py")
    known = PASS.match(frame.function) is not None or PASS_CODE.search(frame.file.replace("\\", "/")) is not None
    return (known and not saves) or "F.linear(" in frame.text or CALLS_MODEL.search(frame.text) is not None


def _is_product(frame: Frame) -> bool:
    code = MATMUL_CODE.search(frame.file.replace("\\", "/")) and frame.function in ("forward", "apply")
    return bool(code) or MATMUL.search(frame.text) is not None or MATMUL_FUNCTION.match(frame.function) is not None


def _is_attention(frame: Frame) -> bool:
    path = frame.file.replace("\\", "/")
    return ATTENTION_CODE.search(path) is not None or ATTENTION_FUNCTION.match(frame.function) is not None


def _collects(frame: Frame) -> bool:
    return COLLECTS.match(frame.function) is not None or "nested_concat(" in frame.text


def _puts_on_card(frames: Sequence[Frame]) -> Frame | None:
    """Where a module was on its way to the card as a whole: torch's own function, or the line that calls it."""
    moved = frames[-1].function in MOVING and frames[-1].file.replace("\\", "/").endswith(MOVES)
    called = next((one for one in reversed(frames) if TO_CARD.search(one.text) and MOVES not in one.file), None)
    if called is not None and (moved or called is frames[-1]) and PASS.match(called.function) is None:
        return called
    return frames[-1] if moved else None


def _reads(frame: Frame) -> bool:
    return "torch.load(" in frame.text or READS.search(frame.file.replace("\\", "/")) is not None


def _makes_weights(frames: Sequence[Frame]) -> Frame | None:
    """Where an engine failed while it made its weights, before it measured or captured anything."""
    if any(ENGINE_MEASURES.search(frame.function) for frame in frames):
        return None
    return next((frame for frame in reversed(frames) if _is_weight(frame)), None)


def _is_weight(frame: Frame) -> bool:
    parts = frame.file.replace("\\", "/").split("/")
    layer = frame.function.split(".")[-1] == "__init__" and bool({"models", "layers"} & set(parts))
    made = layer or ENGINE_WEIGHTS.match(frame.function) is not None
    return made and any(engine in parts[:-1] for engine in ENGINES)


def _engine(frames: Sequence[Frame]) -> dict[str, Fact]:
    """Which engine's own code failed, by the folder of the innermost frame that lies in one."""
    for frame in reversed(frames):
        parts = frame.file.replace("\\", "/").split("/")
        name = next((engine for engine in ENGINES if engine in parts[:-1]), None)
        if name is not None:
            return {"frame.engine": Fact(name, "log", frame_words(frame))}
    return {}


def _scoring(frames: Sequence[Frame]) -> dict[str, Fact]:
    """Whether what failed goes over the whole vocabulary; nothing where the innermost frames do not tell."""
    near = list(reversed(frames[-NEAREST:]))
    if any(ATTENTION.search(frame.text) for frame in near):
        return {}
    cast = next((frame for frame in near if LOGITS_CAST.match(frame.function)), None)
    found = cast or next((frame for frame in near if LOGITS.match(frame.function)), None)
    if found is None and scores(frames[-1]):
        found = frames[-1]
    if found is None:
        return {}
    because = frame_words(found)
    whole = {"frame.logits_cast": Fact(True, "log", because)} if cast is not None else {}
    return {"frame.logits": Fact(True, "log", because), **whole}


_TRAINERS = (
    ("deepspeed", re.compile(r"(?:^|/)deepspeed/(?:runtime|ops)/")),
    ("megatron", re.compile(r"(?:^|/)megatron/core/|/megatron_\w+\.py$|/(?:engine/megatron|backends/megatron_utils)/")),
    (
        "fsdp",
        re.compile(
            r"(?:^|/)torch/distributed/(?:fsdp|_composable/fsdp)/|/(?:(?:fsdp2?|dtensor)_\w+|dp_actor|dp_critic)\.py$"
            r"|/(?:engine/fsdp|backends/fsdp_utils)/"
        ),
    ),
)
"""Trainer → code of its own that runs only where it trains (deepspeedai/DeepSpeed, NVIDIA/Megatron-LM, pytorch;
verl-project/verl@v0.7.0 verl/workers, THUDM/slime@v0.3.1 slime/backends)."""
_STAGES = (
    (True, re.compile(r"/zero/(?:stage3|partition_parameters|partitioned_param_coordinator|parameter_offload)\.py$")),
    (False, re.compile(r"/zero/stage_1_and_2\.py$")),
)
"""Whether it is ZeRO-3 → files of deepspeed/runtime/zero that run only then (deepspeedai/DeepSpeed@v0.16.0)."""


_WORKERS = (
    ("megatron", re.compile(r"Megatron\w*(?:PolicyWorker|TrainRayActor)")),
    ("fsdp", re.compile(r"(?:DTensor\w*PolicyWorker|FSDP\w*TrainRayActor)")),
)
"""Trainer → Ray classes that train with it (NVIDIA-NeMo/RL@7ea279abf nemo_rl/models/policy/workers;
THUDM/slime@624b824a8 slime/backends/megatron_utils/actor.py)."""


def backend_facts(crash: Crash) -> dict[str, Fact]:
    """trainer and zero3, each only where a frame lies in code that runs with one of them alone, or the process that
    failed is of a class that trains so."""
    facts: dict[str, Fact] = {}
    failed = crash.evidence[0].process if crash.evidence else ""
    for trainer, names in _WORKERS:
        if names.match(failed):
            facts.setdefault("trainer", Fact(trainer, "log", clean_line(failed, 80)))
    for frame in crash.frames:
        path = frame.file.replace("\\", "/")
        where = frame_words(frame)
        for trainer, pattern in _TRAINERS:
            if pattern.search(path):
                facts.setdefault("trainer", Fact(trainer, "log", where))
        for stage_three, pattern in _STAGES:
            if pattern.search(path):
                facts.setdefault("zero3", Fact(stage_three, "log", where))
    return facts
