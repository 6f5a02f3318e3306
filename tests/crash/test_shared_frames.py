"""A frame that several phases run tells the phase by its caller; without one the phases that are left are named."""

from advisor.crash.evidence import Crash
from tests.loops import each

from .known import judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
TRL, SWIFT = "/x/trl/trainer/grpo_trainer.py", "/x/swift/trainers/rlhf_trainer/grpo_trainer.py"
VERL, EASY = "/x/verl/workers/actor/dp_actor.py", "/x/EasyR1/verl/workers/actor/dp_actor.py"
ENGINE = "/x/verl/workers/engine/fsdp/transformer_impl.py"
ORLHF, ORZ = "/x/openrlhf/models/actor.py", "/x/orz/ppo/models.py"
INNER = ("/x/torch/nn/modules/module.py", "_call_impl")

SHARED = [
    (TRL, "_get_per_token_logps_and_entropies", ("actor_update", "log_prob")),
    ("/x/trl/trainer/rloo_trainer.py", "_get_per_token_logps_and_entropies", ("actor_update", "log_prob")),
    (SWIFT, "_get_logps_via_local_forward", ("actor_update", "log_prob")),
    (VERL, "_forward_micro_batch", ("actor_update", "log_prob")),
    (EASY, "_forward_micro_batch", ("actor_update", "log_prob")),
    ("/x/verl/workers/actor/megatron_actor.py", "forward_backward_batch", ("actor_update", "log_prob")),
    ("/x/verl/workers/critic/dp_critic.py", "_forward_micro_batch", ("critic_update", "log_prob")),
    (ENGINE, "forward_step", ("actor_update", "log_prob", "critic_update")),
    (ORLHF, "forward", ("actor_update", "log_prob")),
    ("/x/openrlhf/models/model.py", "forward", ("critic_update", "log_prob")),
    (ORZ, "forward", ("actor_update", "log_prob", "critic_update")),
    ("/x/slime/backends/megatron_utils/loss.py", "get_log_probs_and_entropy", ("actor_update", "log_prob")),
]

CALLED = [
    ("log_prob", TRL, "_generate_and_score_completions", "_get_per_token_logps_and_entropies"),
    ("actor_update", TRL, "_compute_loss", "_get_per_token_logps_and_entropies"),
    ("log_prob", SWIFT, "_prepare_batch_inputs", "_get_per_token_logps"),
    ("actor_update", SWIFT, "_compute_loss", "_get_per_token_logps_and_entropies_single"),
    ("log_prob", VERL, "compute_log_prob", "_forward_micro_batch"),
    ("actor_update", VERL, "update_policy", "_forward_micro_batch"),
    ("log_prob", EASY, "compute_log_prob", "_forward_micro_batch"),
    ("actor_update", EASY, "update_policy", "_forward_micro_batch"),
    ("log_prob", "/x/verl/workers/critic/dp_critic.py", "compute_values", "_forward_micro_batch"),
    ("critic_update", "/x/verl/workers/critic/dp_critic.py", "update_critic", "_forward_micro_batch"),
    ("log_prob", ENGINE, "infer_batch", "forward_step"),
    ("actor_update", ENGINE, "train_batch", "forward_step"),
    ("log_prob", "/x/openrlhf/trainer/ray/launcher.py", "forward", None),
    ("actor_update", "/x/openrlhf/trainer/ray/ppo_actor.py", "training_step", None),
    ("critic_update", "/x/openrlhf/trainer/ray/ppo_critic.py", "training_step", None),
    ("log_prob", "/x/orz/ppo/actors.py", "forward", None),
    ("actor_update", "/x/orz/ppo/actors.py", "training_step", None),
]
"""Phase, file and function of the caller, and the frame below it (None: the model's own forward)."""


def traced(*frames: tuple[str, str], before: str = "", prefix: str = "", source: str = "    call()") -> Crash:
    lines = [before, "Traceback (most recent call last):"]
    for number, (file, function) in enumerate(frames, 1):
        lines += [f'  File "{file}", line {number}, in {function}', source if number == 1 else "    call()"]
    return judge("\n".join(prefix + line for line in [*lines, OOM]))


@each(("file", "function", "among"), SHARED)
def test_without_its_caller_the_phases_are_named_and_none_is_claimed(file, function, among):
    crash = traced((file, function), INNER)
    assert (crash.phase, crash.phase_among) == ("unknown", among)
    assert function in crash.phase_because
    assert "caller is not shown" in crash.phase_because


@each(("phase", "file", "caller", "function"), CALLED)
def test_the_caller_tells_the_phase(phase, file, caller, function):
    below = (file, function) if function else (ORLHF if "openrlhf" in file else ORZ, "forward")
    crash = traced((file, caller), below, INNER)
    assert (crash.phase, crash.phase_among) == (phase, ())


@each(
    ("source", "phase"),
    [
        ("    old_per_token_logps, _ = self._get_per_token_logps_and_entropies(", "log_prob"),
        ("    ref_per_token_logps = self._get_per_token_logps(", "log_prob"),
        ("    per_token_logps, entropies = self._get_per_token_logps_and_entropies(", "actor_update"),
        ("    per_token_logps = self._get_per_token_logps(model, input_ids)", "actor_update"),
        ("    logps = selective_log_softmax(logits, completion_ids)", "unknown"),
    ],
)
def test_the_callers_line_of_source_is_enough(source, phase):
    assert traced((TRL, "_get_per_token_logps_and_entropies"), source=source).phase == phase


def test_a_progress_mark_chooses_among_the_phases_and_does_not_overrule_them():
    running = "(pid=4) Update policy:  31%|###   | 5/16 [00:10<00:22]"
    assert traced((EASY, "_forward_micro_batch"), before=running).phase == "actor_update"
    critic = "(pid=4) Update critic:  31%|###   | 5/16 [00:10<00:22]"
    crash = traced((EASY, "_forward_micro_batch"), before=critic)
    assert (crash.phase, crash.phase_among) == ("unknown", ("actor_update", "log_prob"))


def test_in_a_critics_process_the_update_is_the_critics():
    crash = traced((ORZ, "forward"), prefix="(CriticRayActorBase pid=4) ")
    assert crash.phase_among == ("critic_update", "log_prob")


def test_a_frame_that_only_one_phase_runs_leaves_nothing_open():
    crash = traced((VERL, "_forward_micro_batch"), ("/x/torch/optim/adamw.py", "step"))
    assert (crash.phase, crash.phase_among) == ("optimizer_step", ())
