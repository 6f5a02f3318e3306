"""Makes a tiny Qwen2 of random weights and a tokenizer of single bytes in the folder named: nothing is fetched.

With $LETTERS it knows those alone, so that answers of a model that was never trained end soon.
"""

from __future__ import annotations

import os
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

torch.manual_seed(0)
words = [*sorted(os.environ.get("LETTERS") or pre_tokenizers.ByteLevel.alphabet()), "<pad>", "<eos>"]
tokenizer = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
fast.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
fast.save_pretrained(sys.argv[1])
config = Qwen2Config(
    vocab_size=len(words),
    hidden_size=64,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    bos_token_id=None,
    pad_token_id=len(words) - 2,
    eos_token_id=len(words) - 1,
)
Qwen2ForCausalLM(config).save_pretrained(sys.argv[1])
