"""What a person states of a run that died: growth, steps that were done; and what was observed of settings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.observations import (
    cures,
    fitted_in,
    in_vain,
    observations_in,
    of_the_run,
    resumes_only,
    trigger,
    updated_in,
)
from advisor.crash.statements import A_PAGE, FACT, statements_in
from advisor.knowledge import load_knowledge

WORDS = load_knowledge().signatures.statements
STATED = {
    "显存单调上涨，直至OOM，训练几百步后才出现，降低seq len和batch size只会减慢OOM的速度": {
        "grows.gpu", "steps", "in_vain.batch", "in_vain.length",
    },
    "I'm getting OOMs after training for ~120+ steps, any ideas?": {"steps"},
    "GPU memory usage keeps increasing with each step until OOM.": {"grows.gpu", "steps"},
    "The CPU memory gradually increases during training and the process is killed.": {"grows.host", "steps"},
    "there seems to be a memory leak, RAM is climbing slowly to 500GB": {"grows.host", "steps"},
    "Even with batch size 1 I get CUDA out of memory.": {"in_vain.batch"},
    "I tried reducing max_length to 512 but it didn't help.": {"in_vain.length"},
    "已经把batch size 设为1了还是爆显存": {"in_vain.batch"},
    "开启了gradient_checkpointing依然OOM": {"in_vain.recompute", "on.actor.gradient_checkpointing"},
    "We run with flash attention 2": {"on.actor.flash_attention"},
    "You could try gradient checkpointing": set(),
    "It ran fine for 3 epochs, then OOM": {"steps"},
    "with batch size 8 it still works but 16 OOMs": {"began.batch batch size 16", "cure.batch size 8"},
    "Setting rollout.gpu_memory_utilization to 0.85 would cause OOM on our nodes.": {
        "began.engine rollout.gpu_memory_utilization 0.85",
    },
    "OOM when max_prompt_length = 8192.": {"began.length max_prompt_length 8192"},
    "raising num_generations from 4 to 16 leads to out of memory": {"began.samples num_generations 16"},
    "It OOMs during the backward pass on the second step": {"second_step"},
    "第2步就爆显存": {"second_step"},
    "the second step of the tutorial is to install flash-attn": set(),
    "max_length 2048可以，4096就爆显存": {"began.length max_length 4096"},
    "把max_completion_length调到4096就OOM": {"began.length max_completion_length 4096"},
    "It trains well on 4 GPUs, but with 8 GPUs the node runs out of memory": {"began.cards 8 GPUs"},
    "Set batch size to 1 to avoid OOM": set(),
    "We use max_length 4096 and get CUDA out of memory": set(),
    "With batch size 4 it crashed at step 300 with out of memory": {"steps"},
    "GPU memory goes from 30GB at step 1 to 79GB at step 900 and then OOM.": {"grows.gpu", "steps"},
    "memory from 40GB to 42GB over 100 steps": set(),
    "OOM right at the first step": {"first_step"},
    "Since upgrading transformers from 4.45 to 4.47 my run OOMs.": {"fitted.transformers 4.45 4.47"},
    "It works with vllm==0.6.3 but OOMs with 0.8.2": {"fitted.vllm 0.6.3 0.8.2"},
    "Downgrading deepspeed to 0.15.4 solved the OOM": {"fitted.deepspeed 0.15.4"},
    "downgrading deepspeed to 0.15.4 did not help": set(),
    "I ran it with vllm 0.8.2 on 8 cards and it OOMs": set(),
    "把vllm降级到0.7.3就好了": {"fitted.vllm 0.7.3"},
    "升级了torch之后就爆显存": {"updated.torch"},
    "Please upgrade transformers to 4.48.0": set(),
    "llama 70b, zero 3 offload": {"shared.offload"},
    "The same config worked fine two days ago on this cluster.": {"ran_before"},
    "sometimes OOM, sometimes not": {"ran_before"},
    "同样的配置昨天还能跑": {"ran_before"},
    "I only hit OOM when resuming from a checkpoint.": {"resumes.only"},
    "A fresh run trains fine, resuming gives OOM.": {"resumes.only"},
    "断点续训才会OOM": {"resumes.only"},
    "We resume from step 400 and it continues.": set(),
    "Fold 1 is ok, the second fold OOMs.": {"earlier.model"},
    "I fine-tune three models in a loop and it dies.": {"earlier.model"},
    "The reference model is a second model on the card.": set(),
    "It always crashes at step 500.": {"steps", "periodic"},
    "每次50步的时候oom": {"periodic"},
    "It always crashes at step 437.": {"steps"},
    "All ranks allocate on cuda:0.": {"gpu.others_alike"},
    "Each process uses its own GPU.": set(),
    "This script ran out of memory before the first save": set(),
    "it worked before I raised the batch size": set(),
    "There is no memory leak.": set(),
    "Reducing num_workers from 16 to 4 fixed it.": {"cure.downnum_workers 4"},
    "Removing --use-rollout-routing-replay makes it work.": {"cure.offuse-rollout-routing-replay"},
    "3B works fine with batch size 8, but 7B OOMs.": set(),
    "Full finetuning OOMs, LoRA works.": {"shared.full", "shared.adapters"},
    "These settings made my run fit:\n\nrollout.free_cache=True\nmax_seqs: 64": {
        "cure.rollout.free_cache True", "cure.max_seqs 64",
    },
    "I set num_generations to 4. That fixed it for me.": {"cure.num_generations 4"},
    "We resized the images. The problem is solved if I use fewer of them.": set(),
    "Lowered the sequence length. None of it helped, still CUDA OOM.": {"in_vain.length"},
    "It OOMs unless I turn on gradient checkpointing.": {"cure.ongradient checkpointing"},
    "After turning on optimizer offload it dies of RAM OOM": {
        "began.offload optimizer offload", "cure.offoptimizer offload", "shared.offload",
    },
    "Going from TP=2 to TP=4 got rid of the OOM.": {"cure.tensor_parallel_size 4"},
    "I set max_pixels=12800 and get OOM": set(),
    "qwen-14b with cutoff_len 8000 was fine; llama3-8b with cutoff_len 8000 OOMs": set(),
    "**Without** `flash_attn` it OOMs": set(),
    "The moment I go from 0.7.1 to 0.7.2 it runs out of memory": {"fitted. 0.7.1 0.7.2"},
    "ds_z3_config.json会OOM，换成ds_z3_offload_config.json就能跑": {
        "cure.deepspeed ds_z3_offload_config.json", "shared.offload",
    },
    "原来是忘了开flash_attn，开了之后就不爆显存了": set(),
    "关闭 --use_liger_kernel 后就正常了": {"cure.offuse_liger_kernel"},
    "试过 gradient checkpointing 和 offload，都没用": {"in_vain.recompute", "in_vain.offload"},
    "Does it work with batch size 1?": set(),
    "If I keep --enable_sleep it OOMs, if I remove it everything runs fine.": {"cure.offenable_sleep"},
    "就算batch设为1，用zero2也会报OOM": {"in_vain.batch"},
    "vllm 0.8.5没有这个问题，0.9.0开始爆显存": {"fitted.vllm 0.8.5 0.9.0"},
    "2k works, 8k dies": {"began.length 8k"},
    "if run with --no-load-optim, it is ok. But with load optim, it is oom": {"resumes.only", "cure.offload-optim"},
    "There is no way to add RAM to this node.": {"no_more.ram"},
    "只有一张24G的4090": {"no_more.cards"},
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB": set(),
    "step 100: memory 70 GB, still running": set(),
}  # fmt: skip


def _told(text: str) -> set[str]:
    """All that a text tells, by the names that the table above uses: facts without the words that tell them."""
    assert WORDS is not None
    names = (
        one.split(" ")[0].removeprefix(FACT) if one.startswith(FACT) else one for one in statements_in(text, WORDS)
    )
    seen = observations_in(text, WORDS)
    began, updated = trigger(seen), updated_in(seen)
    return {
        *names,
        *(f"in_vain.{lever}" for lever in in_vain(seen, WORDS)),
        *(f"cure.{one.change}{one.named}" for one in cures(seen)),
        *(" ".join((f"fitted.{name}", *filter(None, versions))) for name, versions in fitted_in(seen).items()),
        *([f"began.{began.lever or began.kind} {began.named}"] if began else []),
        *([f"updated.{updated.name}"] if updated else []),
        *(["resumes.only"] if resumes_only(seen) else []),
        *(f"no_more.{one.name}" for one in seen if one.outcome == "ruled_out"),
    }


def test_statements_are_told_apart() -> None:
    found = {text: _told(text) for text in STATED}
    assert {text: names for text, names in found.items() if names != STATED[text]} == {}


def test_what_worked_is_no_launch_that_died() -> None:
    said = "micro_batch works so: `python train.py a.micro_batch=1`. With micro_batch=8 and max_len=512 it dies."
    named = {"a.micro_batch": "1", "micro_batch": "1", "max_len": "512"}
    assert of_the_run(named, observations_in(said, WORDS)) == {"micro_batch": "8", "max_len": "512"}


OUTCOMES = {
    "Setting {what} fixed it.": "worked", "It works with {what}.": "worked", "The OOM is gone with {what}": "worked",
    "Even with {what} it still OOMs.": "no_help", "Using {what} did not help": "no_help", "Maybe {what} fixes it?": "",
    "I tried {what}, same error": "no_help", "When I set {what} it runs out of memory": "failed",
    "设置 {what} 后就正常了": "worked", "用 {what} 没有用": "no_help", "Please try {what}": "",
    "how to set {what} to avoid OOM": "", "用 {what} 是不是就解决了？": "",
}  # fmt: skip


@given(
    st.from_regex(r"[a-z]{2,9}_[a-z]{2,9}", fullmatch=True), st.integers(1, 99_999), st.sampled_from(sorted(OUTCOMES))
)
def test_a_setting_of_any_name_has_the_outcome_of_its_sentence(name: str, value: int, sentence: str) -> None:
    seen = observations_in(sentence.format(what=f"{name}={value}"), WORDS)
    of_it = {one.outcome for one in seen if one.kind == "setting" and not one.implied}
    assert of_it == ({OUTCOMES[sentence]} - {""})


@given(st.text(st.sampled_from("work fail oom help with=8 batch_size but, not 解决没用只有,，。`:-")))
def test_no_text_is_too_strange(text: str) -> None:
    observations_in(text, WORDS)


def test_a_long_log_states_nothing() -> None:
    grows = "GPU memory usage keeps increasing with each step, batch size 1 works.\n"
    long = grows * (A_PAGE // len(grows) + 1)
    assert (statements_in(long, WORDS), observations_in(long, WORDS)) == (frozenset(), ())
    assert observations_in("batch size 1 works " * (A_PAGE // 20), WORDS) == ()
