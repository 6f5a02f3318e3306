"""A count that lacks a main part says so, proves nothing, and takes no engine that a program does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

VERL = """python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=1024 \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\
  actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.gpu_memory_utilization=0.3 \\
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 trainer.n_gpus_per_node=8 \\
  data.train_batch_size=64 {more}
"""
PPO = """{starts} --pretrain meta-llama/Meta-Llama-3-8B --reward_pretrain meta-llama/Meta-Llama-3-8B --zero_stage 2 \\
  --micro_train_batch_size 2 --micro_rollout_batch_size 4 --train_batch_size 128 --rollout_batch_size 1024 --bf16 \\
  --prompt_max_len 1024 --generate_max_len 1024 --gradient_checkpointing --flash_attn
"""


def read(folder: Path, script: str, name: str = "run.sh", gpus: str = "8xA100-80GB", **answers: str) -> State:
    file = folder / name
    file.write_text(script)
    return open_session(SessionRequest(file, gpus=gpus, host_ram="2000GB", answers=answers))


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("data.max_response_length=$LEN", "data.max_response_length"),
        (
            "data.max_response_length=1024 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$ROWS",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
        ),
        (
            "data.max_response_length=1024 actor_rollout_ref.rollout.gpu_memory_utilization=$SHARE",
            "actor_rollout_ref.rollout.gpu_memory_utilization",
        ),
    ],
)
def test_a_part_that_nobody_could_read_is_named_and_no_fit_is_said(tmp_path: Path, more: str, key: str) -> None:
    state = read(tmp_path, VERL.format(more=more))
    assert state.situation is not None
    now = state.situation.predictor.predict()
    assert now.fit.verdict == "cannot_be_said", now.fit.findings
    assert [one.key for one in now.fit.findings] == [key]
    assert now.enough is None
    assert any(key in said for said in state.ledger.assumed)
    assert "ledger.gpu_fits" not in state.situation.facts


def test_what_is_too_large_without_the_part_is_too_large_with_it(tmp_path: Path) -> None:
    script = VERL.format(more="data.max_response_length=$LEN").replace("2.5-1.5B", "2.5-32B")
    state = read(tmp_path, script, gpus="8x24GB")
    assert state.situation is not None
    assert state.situation.predictor.predict().fit.verdict == "does_not_fit"


def test_a_token_budget_bounds_the_pass_of_rows_of_unknown_length(tmp_path: Path) -> None:
    budget = "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.model.use_remove_padding=True"
    more = f"{budget} actor_rollout_ref.actor.ppo_max_token_len_per_gpu={{}} data.max_response_length={{}}"
    unknown = read(tmp_path, VERL.format(more=more.format(20000, "$LEN")))
    known = read(tmp_path, VERL.format(more=more.format(20000, 18976)))
    assert unknown.situation is not None
    assert unknown.situation.predictor.predict().fit.verdict != "cannot_be_said"
    sizes = []
    for state in (unknown, known):
        update = state.ledger.phase("gpu", "actor_update")
        assert update is not None
        sizes.append(update.of("logits"))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)


@pytest.mark.parametrize(
    ("starts", "engine"),
    [
        ("deepspeed --module openrlhf.cli.train_ppo", False),
        ("torchrun --nproc_per_node=8 train_ppo.py", False),
        ("python -m openrlhf.cli.train_ppo_ray --colocate_all_models --vllm_num_engines 8", True),
    ],
)
def test_a_program_without_an_engine_has_no_share_of_one(tmp_path: Path, starts: str, engine: bool) -> None:
    ledger = read(tmp_path, PPO.format(starts=starts)).ledger
    assert (ledger.phase("gpu", "weight_sync") is not None) is engine
    generating = ledger.phase("gpu", "rollout_generate")
    assert generating is not None
    assert bool(generating.of("engine_weights")) is engine


def test_deepspeed_chat_generates_with_its_actor(tmp_path: Path) -> None:
    script = "deepspeed --num_gpus 8 main.py --actor_model_name_or_path facebook/opt-6.7b --actor_zero_stage 3 "
    state = read(tmp_path, f"{script}--critic_zero_stage 3 --critic_model_name_or_path facebook/opt-350m\n")
    assert state.ledger.phase("gpu", "rollout_init") is None


SFT = """from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B"{loaded})
rows = data.map(lambda row: tokenizer(row["text"]{called}))
args = TrainingArguments(output_dir="out", per_device_train_batch_size=4)
Trainer(model=model, args=args, train_dataset=rows).train()
"""


@pytest.mark.parametrize(
    ("loaded", "called", "length"),
    [
        ("", ", truncation=True, max_length=1500", 1500),
        (", model_max_length=3000", "", 3000),
        (", model_max_length=3000", ", truncation=True, max_length=1500", 1500),
        ("", ", max_length=1500", None),
    ],
)
def test_the_length_to_which_a_tokenizer_cuts_is_read(
    tmp_path: Path, loaded: str, called: str, length: int | None
) -> None:
    run = read(tmp_path, SFT.format(loaded=loaded, called=called), "train.py").run
    assert run.number("data.total_tokens") == length


def test_after_a_crash_rows_are_counted_at_their_cap(tmp_path: Path) -> None:
    """Those of usual length leave the card with room, and it ran out."""
    script = """deepspeed --num_gpus=8 src/train.py --stage sft --do_train --finetuning_type full --bf16 \\
      --model_name_or_path Qwen/Qwen2.5-0.5B --cutoff_len 10240 --per_device_train_batch_size 1 --deepspeed z3.json
    """
    unknown = read(tmp_path, script, gpus="8x20GB").ledger.phase("gpu", "actor_update")
    died = read(tmp_path, script, gpus="8x20GB", memory="gpu")
    crashed = died.ledger.phase("gpu", "actor_update")
    assert unknown is not None
    assert crashed is not None
    assert unknown.expected < 20 * 2**30 < crashed.expected == crashed.by_data[1]
    assert "which fits" not in short_report(died)


def test_a_batch_that_is_read_and_multiplied_is_not_missing(tmp_path: Path) -> None:
    script = """torchrun --nproc_per_node="4" src/r1-v/src/open_r1/grpo.py --output_dir out --dataset_name d \\
      --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --per_device_train_batch_size 1 --num_generations 4 \\
      --max_prompt_length 512 --max_completion_length 512 --max_pixels 401408 --bf16
    """
    run = read(tmp_path, script).run
    assert run.number("actor.micro_batch") == 4
    assert run.knobs["actor.micro_batch"].times_samples
    assert not any(knob.unread for knob in run.knobs.values())
