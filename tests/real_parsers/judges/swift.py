"""ms-swift: RLHFArguments through transformers' HfArgumentParser; keys, types and defaults, without `__post_init__`."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = (
    *(
        "vllm",
        "deepspeed",
        "flash_attn",
        "sglang",
        "lmdeploy",
        "ray",
        "liger_kernel",
        "megatron",
        "mcore_bridge",
        "trl",
    ),
    *("aiohttp", "peft", "cv2", "qwen_vl_utils", "gradio", "openai", "fastapi", "uvicorn", "zmq", "wandb"),
    *(
        "attrdict",
        "addict",
        "json_repair",
        "matplotlib",
        "oss2",
        "binpacking",
        "nltk",
        "rouge",
        "jieba",
        "charset_normalizer",
    ),
    *("simplejson", "transformers_stream_generator", "sortedcontainers", "tensorboard", "dacite", "einops", "tiktoken"),
)
PLACES = ("swift.arguments", "swift.llm.argument.rlhf_args", "swift.llm.argument", "swift.llm")


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what the parser of transformers raises, and for words that it does not know."""
    stand_in_for(HEAVY)
    parser_class = importlib.import_module("transformers").HfArgumentParser
    found = importlib.import_module(PLACES[0] if (tree / "swift" / "arguments").is_dir() else PLACES[1])
    arguments = found.RLHFArguments
    arguments.__post_init__ = lambda self: None

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        done, left = parser_class([arguments]).parse_args_into_dataclasses(list(argv), return_remaining_strings=True)
        if left:  # as swift itself does: "remaining_argv"
            raise ValueError(f"remaining_argv: {left}")
        return {field.name: getattr(done, field.name, None) for field in dataclasses.fields(arguments)}

    return parse
