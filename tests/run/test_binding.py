"""Native values become knobs as the framework itself would turn them."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from advisor.machine.inventory import Gpu, Machine
from advisor.rules.functions import version_in
from advisor.run.bound import bind_natives, keys_of_knobs
from advisor.run.build import BuiltRun, RunInputs, build_run
from advisor.run.constraints import no_effect, violations
from advisor.run.dialect import recognise
from advisor.run.values import parse_value
from advisor.script.document import Setting
from advisor.script.launch import Launch
from advisor.units import GIB
from tests.loops import each

K = load_knowledge()
A = "actor_rollout_ref."


def launch(program: str, environment: dict[str, str] | None = None, /, **settings: str | tuple[()]) -> Launch:
    made = tuple(Setting(key.replace("__", "."), value, "command") for key, value in settings.items())
    return Launch(0, program, (), environment or {}, made)


def gpus(count: int, size: int = 80) -> Machine:
    return Machine(nodes=1, gpus=tuple(Gpu(i, "A100", size * GIB) for i in range(count)))


def built(made: Launch, machine: Machine, text: str = "", libraries: dict[str, str] | None = None) -> BuiltRun:
    recognised = recognise(made, text, (), {}, libraries or {}, K.frameworks)
    return build_run(RunInputs(recognised, made, machine, K.models))


def logic_rl(batch: int, samples: int, micro: int, **more: str) -> BuiltRun:
    settings = {
        "data__train_files": "data/kk/instruct/5ppl/train.parquet",
        "data__train_batch_size": str(batch),
        "data__max_prompt_length": "400",
        "data__max_response_length": "2048",
        "actor_rollout_ref__rollout__n": str(samples),
        "actor_rollout_ref__actor__ppo_micro_batch_size": str(micro),
        "trainer__n_gpus_per_node": "4",
        **more,
    }
    return built(launch("verl.trainer.main_ppo", **settings), gpus(4), "data/kk/instruct")


@each(
    ("batch", "samples", "micro", "held", "passes"),
    [(64, 16, 16, 256, 64), (16, 8, 64, 32, 128), (8, 32, 64, 64, 512), (4, 64, 64, 64, 1024)],
)
def test_logic_rl_divides_the_micro_batch_by_the_gpus_and_multiplies_it_by_the_samples(
    batch: int, samples: int, micro: int, held: int, passes: int
) -> None:
    run = logic_rl(batch, samples, micro).run
    assert run.framework == "logic-rl"
    assert run.number("actor.sequences_per_gpu") == held
    assert run.number("actor.micro_batch") == passes


def test_a_micro_batch_above_what_a_gpu_holds_is_said_to_have_no_effect() -> None:
    key = A + "actor.ppo_micro_batch_size"
    assert "not what binds" in no_effect(logic_rl(8, 32, 64), key)
    assert no_effect(logic_rl(64, 16, 16), key) == ""


def test_a_train_batch_that_the_gpus_do_not_divide_is_refused_with_the_reason() -> None:
    assert any(
        "multiple of the number of GPUs" in v for v in violations(logic_rl(6, 32, 64), ["data.train_batch_size"])
    )
    assert violations(logic_rl(8, 32, 64), ["data.train_batch_size"]) == []


def test_a_token_budget_below_one_sequence_is_refused() -> None:
    key = A + "actor.ppo_max_token_len_per_gpu"
    small = logic_rl(8, 32, 64, **{key.replace(".", "__"): "2000"})
    assert violations(small, [key])
    assert not violations(logic_rl(8, 32, 64, **{key.replace(".", "__"): "2448"}), [key])


def test_easyr1_and_logic_rl_are_told_apart_although_both_install_as_verl() -> None:
    easy = built(launch("verl.trainer.main", worker__rollout__n="5"), gpus(8))
    assert (easy.run.framework, logic_rl(8, 8, 64).run.framework) == ("easyr1", "logic-rl")
    newer = launch("verl.trainer.main_ppo", actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu="4")
    assert built(newer, gpus(8)).run.framework == "verl"


def test_the_era_follows_the_installed_version() -> None:
    made = launch("verl.trainer.main_ppo", actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu="4")
    eras = {v: built(made, gpus(8), libraries={"verl": v}).run.era for v in ("0.2.0", "0.5.0", "0.7.0")}
    assert len(set(eras.values())) == 3


def test_an_unknown_program_gives_a_run_without_knobs_but_with_its_gpus() -> None:
    run = built(launch("train_rl.py", batch="64"), gpus(8)).run
    assert (run.framework, run.topology.actor_gpus, dict(run.knobs)["rollout.colocated"].value) == ("unknown", 8, True)


def test_ms_swift_counts_the_processes_of_the_environment_and_leaves_the_last_card_to_the_engine() -> None:
    env = {"NPROC_PER_NODE": "3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    given = {"--rlhf_type": "grpo", "--use_vllm": "true", "--deepspeed": "zero3", "--num_generations": "8"}
    made = launch("swift rlhf", env, **given, **{"--per_device_train_batch_size": "8"})
    run = built(made, gpus(4), libraries={"ms-swift": "3.1.1"}).run
    cards = run.topology
    assert (run.era, cards.actor_gpus, cards.rollout_gpus, cards.colocated) == ("v3.1", 3, 1, False)
    assert run.number("actor.zero_stage") == 3


@pytest.mark.parametrize(
    ("name", "era", "key"),
    [("verl", "v0.7", A + "rollout.tensor_model_parallel_size"), ("trl", "v0.28", "vllm_tensor_parallel_size")],
)
def test_what_an_engine_prints_stands_under_the_key_of_each_framework(name: str, era: str, key: str) -> None:
    framework = next(f for f in K.frameworks if f.framework == name)
    found = keys_of_knobs(framework, era, {"rollout.tensor_parallel": "2"})
    assert found == {key: "2"}
    natives = bind_natives(framework, era, (), {}, found, {})
    assert (natives.value(key), natives.values[key].source) == (2, "log")


def test_log_settings_fill_holes_and_never_overrule_the_script() -> None:
    framework = next(f for f in K.frameworks if f.framework == "easyr1")
    script = (
        Setting("worker.rollout.n", "5", "command"),
        Setting("data.rollout_batch_size", None, "command", resolved=False),
    )
    natives = bind_natives(
        framework, "v0.3.2", script, {}, {"worker.rollout.n": "9", "data.rollout_batch_size": "256"}, {}
    )
    assert natives.value("worker.rollout.n") == 5
    assert (natives.value("data.rollout_batch_size"), natives.values["data.rollout_batch_size"].source) == (256, "log")


def test_openrlhf_groups_are_apart_unless_colocated() -> None:
    actor = {"--actor_num_nodes": "4", "--actor_num_gpus_per_node": "8"}
    engines = {"--vllm_num_engines": "4", "--vllm_tensor_parallel_size": "8"}
    given = {**actor, **engines}
    apart = built(launch("openrlhf.cli.train_ppo_ray", **given), gpus(8)).run.topology
    assert (apart.actor_gpus, apart.rollout_gpus, apart.colocated) == (32, 32, False)
    beside = launch("openrlhf.cli.train_ppo_ray", **given, **{"--colocate_all_models": ()})
    assert built(beside, gpus(8)).run.topology.colocated


@each(
    ("text", "kind", "value"),
    [
        ("True", "bool", True),
        ("0.6", "float", 0.6),
        ("8", "int", 8),
        ("8.5", "int", None),
        ("null", "int", None),
        ("'x'", "str", "x"),
    ],
)
def test_native_texts_are_read_as_their_type_or_not_at_all(text: str, kind: str, value: object) -> None:
    assert parse_value(text, kind) == value


@each(
    ("spec", "version", "inside"),
    [
        (">=0.16.0,<0.16.8", "0.16.3", True),
        (">=0.16.0,<0.16.8", "0.16.8", False),
        (">=0.16.0,<0.16.8", "0.15.4", False),
        ("==2.5.1", "2.5.1+cu124", True),
        (">=1", "not a version", False),
    ],
)
def test_versions_are_compared_as_packaging_does(spec: str, version: str, inside: bool) -> None:
    assert version_in(spec, version) is inside


def test_where_nothing_is_set_the_key_counts_whose_default_says_something() -> None:
    """use_galore's false names no optimizer: optim is the key to set."""
    made = launch("llamafactory-cli train", stage="sft", finetuning_type="full")
    carrier = built(made, gpus(8), libraries={"llamafactory": "0.9.3"}).natives.carrier("actor.optimizer")
    assert carrier.key == "optim"


def test_trl_loads_in_the_type_that_its_version_reads() -> None:
    """Measured with 0.17, 0.24 and 1.16 on a CPU: torch_dtype comes to nothing where dtype is float32 already."""

    @each(
        ("trl", "given", "loaded"),
        [
            ("0.17.0", "torch_dtype", "bfloat16"),
            ("0.24.0", "torch_dtype", "bfloat16"),
            ("0.24.0", "dtype", "bfloat16"),
            ("0.24.0", "", "float32"),
            ("0.26.2", "", "auto"),
            ("0.27.2", "", "float32"),
            ("0.27.2", "torch_dtype", "float32"),
            ("1.16.0", "torch_dtype", "float32"),
            ("1.16.0", "dtype", "bfloat16"),
        ],
    )
    def checked(trl: str, given: str, loaded: str) -> None:
        stated = [Setting("Trainer", "SFTTrainer", "file"), Setting("Trainer.model", "Qwen/Qwen2.5-7B", "file")]
        stated += [Setting(f"model_init_kwargs.{given}", "bfloat16", "file")] if given else []
        made = Launch(0, "train", (), {}, tuple(stated), bases=("SFTConfig", "SFTTrainer", "trl.SFTConfig"))
        run = built(made, gpus(1), libraries={"trl": trl, "transformers": "4.57.1"}).run
        assert run.value("actor.load_precision") == loaded

    checked()
