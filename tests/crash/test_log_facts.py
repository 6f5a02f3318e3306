"""Configuration, versions, cards and frameworks are read off the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.crash.config_dump import flatten, settings_in
from advisor.crash.lines import peel
from advisor.crash.log_facts import gpu_names_in, listed_users, pinned_versions
from advisor.knowledge import load_knowledge
from advisor.units import GIB
from tests.heavy import examples
from tests.loops import each

from .known import judge


def test_a_quadro_is_not_taken_for_the_later_card_of_that_number():
    assert gpu_names_in("GPU 0: NVIDIA Quadro RTX 6000\nGPU 1: NVIDIA RTX 6000 Ada") == (
        "Quadro RTX 6000",
        "RTX 6000 Ada",
    )


def read(*lines):
    return settings_in([peel(line, number) for number, line in enumerate(lines, 1)])


def test_verls_printed_dictionary_is_flattened_though_other_workers_print_in_between():
    found = read(
        "(TaskRunner pid=77) {'actor_rollout_ref': {'actor': {'clip_ratio': 0.2,",
        "(WorkerDict pid=9) {'loss': 1}",
        "(TaskRunner pid=77)                                  'fsdp_config': {'param_offload': False,",
        "(TaskRunner pid=77)                                                  'wrap': None}},",
        "(TaskRunner pid=77)                        'rollout': {'gpu_memory_utilization': 0.6, 'n': 5}},",
        "(TaskRunner pid=77)  'trainer': {'logger': ['console', 'wandb'], 'project': 'a {b}'}}",
    )
    assert found == {
        "actor_rollout_ref.actor.clip_ratio": "0.2",
        "actor_rollout_ref.actor.fsdp_config.param_offload": "false",
        "actor_rollout_ref.actor.fsdp_config.wrap": "null",
        "actor_rollout_ref.rollout.gpu_memory_utilization": "0.6",
        "actor_rollout_ref.rollout.n": "5",
        "trainer.logger": "[console,wandb]",
        "trainer.project": "a {b}",
    }


def test_easyr1s_json_is_flattened():
    found = read(
        "(Runner pid=5) {",
        '(Runner pid=5)   "worker": {',
        '(Runner pid=5)     "actor": {"offload": true}',
        "(Runner pid=5)   }",
        "(Runner pid=5) }",
    )
    assert found == {"worker.actor.offload": "true"}


def test_hydras_overrides_and_traced_commands_are_read_and_a_dump_outranks_them():
    found = read(
        "+ python3 -m verl.trainer.main_ppo data.train_batch_size=64 trainer.nnodes=2",
        "{'data': {'train_batch_size': 1024}, 'a': 1}",
        "Error executing job with overrides: ['data.train_batch_size=128', '+data.max=4', 'x.y=\"a b\"']",
    )
    assert found["data.train_batch_size"] == "1024"
    assert (found["data.max"], found["x.y"], found["trainer.nnodes"]) == ("4", "a b", "2")


def test_flags_of_a_traced_command_are_read():
    found = read("+ deepspeed --module openrlhf.cli.train_ppo_ray --zero_stage 3 --bf16 --lr=5e-7")
    assert (found["zero_stage"], found["bf16"], found["lr"]) == ("3", "true", "5e-7")


def test_deepspeeds_printed_configuration_is_read():
    found = read(
        "(A pid=2) [2025-02-22 21:53:45,813] [INFO] [config.py:1003:print]   zero_optimization_stage ...... 3",
        "(A pid=2) [2025-02-22 21:53:45,813] [INFO] [config.py:989:print_user_config]   json = {",
        '(A pid=2)     "steps_per_print": 100, ',
        '(A pid=2)     "zero_optimization": {"stage": 3}',
        "(A pid=2) }",
    )
    assert found == {"zero_optimization_stage": "3", "steps_per_print": "100", "zero_optimization.stage": "3"}


def test_printed_arguments_are_read():
    assert read("RLHFArguments(", "num_generations=8,", "vllm_mode='colocate',", ")", "other=1") == {
        "num_generations": "8",
        "vllm_mode": "colocate",
    }


@each(
    "line",
    [
        "{'loss': 0.1, 'grad_norm': 2.0}",
        "{",
        "{'a': " * 400,
        "{'a': __import__('os').system('true'), 'b': {}}",
        "{'a': 1",
        "+ echo x=1",
    ],
)
def test_metrics_broken_and_hostile_dictionaries_give_nothing(line):
    assert read(line, "next line") == {}


scalars = st.integers(-9, 9) | st.booleans() | st.text("abc {}'\"", max_size=6)
trees = st.dictionaries(
    st.text("abcd", min_size=1, max_size=4), scalars | st.dictionaries(st.text("ef", min_size=1), scalars), min_size=2
)


@settings(max_examples=examples(60), deadline=None)
@given(trees.filter(lambda tree: any(isinstance(value, dict) for value in tree.values())))
def test_any_dictionary_pythons_pprint_writes_comes_back(tree):
    import pprint

    lines = [f"(main_task pid=3) {line}" for line in pprint.pformat(tree, width=40).splitlines()]
    assert read(*lines) == dict(flatten(tree))


def test_versions_are_met_in_the_forms_logs_have():
    log = """\
(A pid=1) [2025-02-22 21:53:45,813] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.16.3, git-hash=x
INFO 06-27 13:10:19 [api_server.py:1043] vLLM API server version 0.8.5
NCCL version 2.21.5+cuda12.4
/x/site-packages/flash_attn-2.7.4.post1.dist-info
transformers==4.51.3
"""
    assert judge(log).libraries == {
        "deepspeed": "0.16.3",
        "vllm": "0.8.5",
        "nccl": "2.21.5",
        "flash-attn": "2.7.4.post1",
        "transformers": "4.51.3",
    }


def test_cards_are_named():
    text = "0  NVIDIA A100-SXM4-40GB  On | NVIDIA H100 80GB HBM3 | Tesla T4 | running on H800-SXM5-80GB"
    assert gpu_names_in(text) == ("A100-SXM4-40GB", "H100 80GB HBM3", "T4", "H800-SXM5-80GB")


@each(
    ("line", "framework"),
    [
        ("(Runner pid=104449) hello", "easyr1"),
        ('  File "/w/EasyR1/verl/trainer/main.py", line 125, in main', "easyr1"),
        ('  File "/w/Logic-RL/verl/workers/fsdp_workers.py", line 1, in x', "logic-rl"),
        ("(PolicyRayActorBase pid=2) x", "open-reasoner-zero"),
        ("(ActorModelRayActor pid=67842) x", "openrlhf"),
        ('  File "/x/swift/trainers/rlhf_trainer/grpo_trainer.py", line 1, in x', "ms-swift"),
        ('  File "/x/trl/trainer/grpo_trainer.py", line 1, in x', "trl"),
        ("(TaskRunner pid=3) {'actor_rollout_ref': 1}", "verl"),
    ],
)
def test_the_frameworks_mark_is_seen_and_the_most_specific_comes_first(line, framework):
    assert judge(line).frameworks[0] == framework


def test_a_list_that_names_the_killed_alone_tells_nothing_of_who_holds_the_node() -> None:
    def row(task: str, used: int) -> dict[str, int | str]:
        return {"pid": 9, "task": task, "task_bytes": used, "node_used_bytes": 700 * GIB}

    assert listed_users([row("main_task", 3 * GIB)]) == ()
    assert [user.command for user in listed_users([row("main_task", 300 * GIB)])] == ["main_task"]


@pytest.mark.parametrize(
    ("file", "verdict"),
    [("fsspec/implementations/local.py", "not_oom"), ("torch/multiprocessing/reductions.py", "unclear")],
)
def test_no_space_in_a_frame_that_writes_files_is_a_full_disk(file, verdict):
    log = f"""Traceback (most recent call last):
  File "/opt/py/site-packages/{file}", line 382, in write
    return self.f.write(*args, **kwargs)
OSError: [Errno 28] No space left on device
"""
    assert judge(log).verdict == verdict


def test_a_kernels_assertion_is_no_shortage_whatever_stands_in_its_condition():
    said = "probability tensor contains either `inf`, `nan` or element < 0"
    line = f"2/87543 [00:18<223:50:10,  9.20s/it]../aten/x.cu:110: _k: block: [0,0,0] Assertion `{said}` failed."
    assert judge(f"  0%|      | {line}\n").signature == "kernel-assertion"


PINNED = (
    ("pip install verl==0.9.0", {"verl": "0.9.0"}),
    ("uv pip install -U 'vllm[audio]==0.8.5.post1' \\\n  torch==2.6.0", {"vllm": "0.8.5.post1", "torch": "2.6.0"}),
    ("!pip install git+https://github.com/volcengine/verl.git@v0.5.0", {"verl": "0.5.0"}),
    ("conda install -y pytorch=2.5.1", {"torch": "2.5.1"}),
    ("# OpenRLHF 0.8.5\n#pip install verl==0.4", {"openrlhf": "0.8.5"}),
    ("# verl v0.4\npip install verl==0.9.0\n# verl 0.5", {"verl": "0.9.0"}),
    ("transformers==4.51.3  # not 4.52\ndeepspeed>=0.16", {"transformers": "4.51.3"}),
    ("# verl takes 0.9 of it\nverl --version 0.9\n# ray 2.40 and vllm 0.8 do not agree", {}),
)


def test_versions_that_a_script_installs_or_remarks() -> None:
    words = load_knowledge().signatures.statements
    assert words is not None
    assert [(text, pinned_versions(text, words.libraries)) for text, _ in PINNED] == list(PINNED)
