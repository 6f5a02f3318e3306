"""What people paste: a command without its head or its tail, flags alone, a launcher's options in a variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from tests.script.conftest import Read, values


@pytest.mark.parametrize(
    "line",
    [
        "torchrun $DIST pkg/cli/train.py --n 1",
        "torchrun $DIST --standalone pkg/cli/train.py --n 1",
        "torchrun --nnodes 2 ${DIST[@]} -m pkg.cli.train --n 1",
        "python -m torch.distributed.run $DIST pkg/cli/train.py --n 1",
    ],
)
def test_options_in_a_variable_that_is_not_set_do_not_hide_the_program(read: Read, line: str) -> None:
    (launch,) = read(line + "\n").launches
    assert launch.program.replace(".py", "").replace("/", ".") == "pkg.cli.train"
    assert values(launch) == {"--n": "1"}


def test_a_program_that_is_not_known_is_not_taken_for_a_file_among_its_arguments(read: Read) -> None:
    assert not read("torchrun $SCRIPT --reward_file a/train.py\n").launches


FLAGS = "    --a 1 --b \\\n    --c x y \\\n    --d=2\n"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (FLAGS, ""),
        (FLAGS.replace("\n", "\r\n"), ""),
        (FLAGS.replace("\\", ""), ""),
        ("This is what I ran, it doesn't work:\n" + FLAGS, ""),
        ("set -x\nread -r -d '' command <<EOF\npkg.cli.train_ppo \\\n" + FLAGS, "pkg.cli.train_ppo"),
        ("read -r -d '' command <<EOF\npkg.cli.train_ppo \\\n" + FLAGS + "EOF\n", "pkg.cli.train_ppo"),
    ],
)
def test_a_block_of_flags_is_read_without_its_first_line_or_its_last(read: Read, text: str, program: str) -> None:
    (launch,) = read(text).launches
    assert (launch.program, values(launch)) == (program, {"--a": "1", "--b": (), "--c": ("x", "y"), "--d": "2"})
    assert "No training command was found" in launch.notes[0]
    span = launch.effective()["--d"].span
    assert text.encode()[span.start : span.end] == b"2"


def test_pasted_settings_are_worth_what_the_lines_above_them_set(read: Read) -> None:
    (launch,) = read("N=7\n\n  a.b=$N \\\n  # a remark\n  a.c=$OUTSIDE a.d='x y'\n").launches
    assert values(launch) == {"a.b": "7", "a.c": None, "a.d": "x y"}


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n   \n# a remark\n\n", " \\ \n"])
def test_settings_below_a_forgotten_backslash_count_and_are_named_however_far(read: Read, between: str) -> None:
    script = read("python train.py --a 1" + between + "    --b 2 \\\n    --c 3\necho done\n")
    (launch,) = script.launches
    assert values(launch) == {"--a": "1", "--b": "2", "--c": "3"}
    (told,) = launch.cuts
    assert "so bash ends the command there; --b, --c below it count as meant" in told
    (done,) = rewrite(script, 0, [EditRequest("--c", "4")])
    assert done.new == b"python train.py --a 1 \\\n    --b 2 \\\n    --c 4\necho done\n"


@pytest.mark.parametrize("below", ["    curl -X POST --data 1\n", "    N=2 python other.py --b 2\n", "cp --b 2\n"])
def test_another_command_below_is_not_joined(read: Read, below: str) -> None:
    (launch, *_) = read("if true; then\n    python train.py --a 1\n" + below + "fi\n").launches
    assert (values(launch), launch.cuts) == ({"--a": "1"}, ())


def test_values_on_the_line_below_a_forgotten_backslash_are_the_settings_own(read: Read) -> None:
    text = "python main.py \\\n  --data a/b c/d \n  e/f g/h \\\n  --model m \\\n  --batch 1\n"
    (launch,) = read(text).launches
    assert values(launch) == {"--data": ("a/b", "c/d", "e/f", "g/h"), "--model": "m", "--batch": "1"}
    assert "line 2" in launch.cuts[0]


COMMENTED = "A=1 \\\nB=2 \\\n# C=3 \\\nswift sft \\\n  --model m \\\n  # --d 1 \\\n  --e 2\n"


def test_a_comment_cuts_as_bash_cuts_and_what_the_program_does_not_get_is_named(read: Read) -> None:
    (launch,) = read(COMMENTED).launches
    assert (values(launch), launch.environment) == ({"--model": "m"}, {})
    below, above = launch.cuts
    assert "line 6" in below
    assert "--e below it" in below
    assert "line 3" in above
    assert "A, B above it are not given to swift sft" in above


def test_a_comment_above_the_model_cannot_have_cut_the_command_that_ran(read: Read) -> None:
    (launch,) = read("swift sft \\\n  --a 1 \\\n  # --d 1 \\\n  --model m\n").launches
    assert values(launch) == {"--a": "1", "--model": "m"}
    assert "nothing could have been trained" in launch.cuts[0]


@pytest.mark.parametrize("tail", [" \\", " \\\n", " \\\n\n  \n"])
def test_a_text_that_ends_in_a_backslash_is_a_part_of_the_command(read: Read, tail: str) -> None:
    (launch,) = read("swift sft --model m" + tail).launches
    assert launch.partial
    assert "ends with a `\\`" in launch.cuts[0]
    assert not read("swift sft --model m \n").launches[0].partial


def test_an_assignment_after_an_empty_line_is_no_lost_setting(read: Read) -> None:
    assert not read("python train.py --a 1\n\n    B=2\n").launches[0].notes


def test_a_rollout_server_alone_is_a_launch_and_is_said_to_be_one(read: Read) -> None:
    for command in ("swift rollout", "trl vllm-serve", "python pkg/cli/rollout.py"):
        (launch,) = read(f"{command} --model m\n").launches
        assert values(launch) == {"--model": "m"}
        assert "the training is another command" in launch.notes[0]
    (launch,) = read("swift rollout --model m &\nswift rlhf --model m\n").launches
    assert (launch.program, launch.notes) == ("swift rlhf", ())


def test_a_script_that_only_calls_another_says_so_where_something_was_to_be_written(read: Read) -> None:
    script = read("bash scripts/elsewhere.sh\n")
    with pytest.raises(EditRefused, match="starts no training itself"):
        rewrite(script, 0, [EditRequest("--a", "1")])


def test_pasted_flags_are_not_written_into(read: Read) -> None:
    for text in (FLAGS, "it doesn't work:\n" + FLAGS):
        with pytest.raises(EditRefused, match="without the command they belong to"):
            rewrite(read(text), 0, [EditRequest("--a", "2")])


def test_a_quote_that_never_closes_does_not_hide_the_flags_before_it(read: Read) -> None:
    script = read(FLAGS.replace("--d=2\n", "--d=2 \\\n    --name 'cut off her"))
    assert values(script.launches[0]) == {"--a": "1", "--b": (), "--c": ("x", "y"), "--d": "2"}
    assert "a single quote opens here and never closes" in script.notes[0]


def test_a_paste_that_ends_within_an_array_keeps_what_it_names(read: Read) -> None:
    script = read("set -ex\nARGS=(\n  --a 1\n)\nCKPT_ARGS=(\n  --hf-checkpoint model/Q\n  --ref-load x\n")
    assert values(script.launches[0]) == {"--a": "1", "--hf-checkpoint": "model/Q", "--ref-load": "x"}
    assert "line 5: a parenthesis opens here and never closes" in script.notes[0]
    script = read("ray stop --force\npkill -9 python\nset -ex\nCKPT_ARGS=(\n  --hf-checkpoint model/Q\n")
    assert values(script.launches[0]) == {"--hf-checkpoint": "model/Q"}  # no option of the command above


def test_a_script_that_ends_before_its_command_hints_at_what_it_sets(read: Read) -> None:
    text = '#!/bin/bash\nNNODES=1\nNGPUS_PER_NODE=4\nDATA=${DATA:-"$HOME/d"}\n'
    hinted = read(text + 'MODEL_PATH=${MODEL_PATH:-"${DATA}/Q-7B"} # x\n').hinted
    assert values(hinted) == {"nnodes": "1", "ngpus_per_node": "4", "data": "./d", "model_path": "./d/Q-7B"}
    assert "ends before the command" in hinted.notes[0]
    assert read("#!/bin/bash\nA=1\nB=2\nls\n").hinted is not None
    assert read("#!/bin/bash\nA=1\n").hinted is None
    (launch,) = read("set -ex\nCKPT_ARGS=(\n  # more\n").launches
    assert launch.partial
    assert "line 2: a parenthesis opens here and never closes" in launch.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NCCL_DEBUG=INFO\npython train.py --a 1\n", True),
        ('PYTORCH_CUDA_ALLOC_CONF="a:b"  # why\npython train.py --a 1\n', True),
        ("export NCCL_DEBUG=INFO\npython train.py --a 1\n", False),
        ("NCCL_DEBUG=INFO\nexport NCCL_DEBUG\npython train.py --a 1\n", False),
        ("set -a\nNCCL_DEBUG=INFO\npython train.py --a 1\n", False),
        ("NCCL_DEBUG=INFO python train.py --a 1\n", False),
        ("NNODES=2\ntorchrun --nnodes=$NNODES train.py --a 1\n", False),
        ("MODEL=m\npython train.py --a 1\n", False),
    ],
)
def test_a_variable_for_libraries_that_is_never_exported_is_remarked(read: Read, text: str, said: bool) -> None:
    (launch,) = read(text).launches
    assert bool([note for note in launch.notes if "is set but not exported" in note]) is said


@pytest.mark.parametrize(
    "text",
    [
        "max_length=1024,\n    per_device_train_batch_size = 4,  # one\n",
        "export MAX_LENGTH=1024\n# x\nPER_DEVICE_TRAIN_BATCH_SIZE='4'\n",
    ],
)
def test_a_text_of_nothing_but_assignments_is_read_as_settings(read: Read, text: str) -> None:
    (launch,) = read(text, "run.sh").launches
    assert values(launch) == {"max_length": "1024", "per_device_train_batch_size": "4"}


@pytest.mark.parametrize("text", ["A=1\nB=$(hostname)\n", "A=1\nB=2\nbash other.sh\n", "A=1\n"])
def test_a_script_that_does_something_else_is_no_list_of_settings(read: Read, text: str) -> None:
    assert read(text, "run.sh").launches == ()


PASTED = """deepspeed --num_gpus 4 src/train_bash.py
--stage sft
--model_name_or_path m/x-13b
--do_train
--cutoff_len 1536

--template plain
# --lora_rank 8
--output_dir out/$NAME   # where it goes
--per_device_train_batch_size 1 \\
--gradient_accumulation_steps 2
--learning_rate 5e-5
--plot_loss
--deepspeed ds.json
--bf16 > train.log 2>&1 &
echo started
"""


def test_lines_that_follow_each_other_without_backslashes_are_one_command_and_that_is_said_once(read: Read) -> None:
    script = read(PASTED)
    (launch,) = script.launches
    assert values(launch) == {
        "--stage": "sft", "--model_name_or_path": "m/x-13b", "--do_train": (), "--cutoff_len": "1536",
        "--template": "plain", "--output_dir": None, "--per_device_train_batch_size": "1",
        "--gradient_accumulation_steps": "2", "--learning_rate": "5e-5", "--plot_loss": (), "--deepspeed": "ds.json",
        "--bf16": (),
    }  # fmt: skip
    (told,) = launch.cuts
    assert told.startswith("11 lines, the first of them line 1, have no `\\` at their end")
    assert "the 12 settings below them count as meant" in told
    assert (launch.lost, launch.maybe_lost) == ((), ())
    (done,) = rewrite(script, 0, [EditRequest("--cutoff_len", "512")])
    assert b"train_bash.py \\\n--stage sft \\\n" in done.new
    assert b"--cutoff_len 512 \\\n--template" in done.new
    assert values(read(done.new.decode()).launches[0])["--bf16"] == ()


@pytest.mark.parametrize("lines", [3, 40])
def test_a_pasted_command_is_read_to_its_end_however_long_it_is(read: Read, lines: int) -> None:
    text = "megatron sft \n" + "".join(f"--key_{number} {number} \n" for number in range(lines)) + "--model m\n"
    (launch,) = read(text).launches
    assert len(values(launch)) == lines + 1
    assert len(launch.cuts) == 1


def test_a_comment_behind_a_line_without_a_backslash_cuts_nothing(read: Read) -> None:
    (launch,) = read("swift sft --model m  # the base\n  --a 1\n").launches
    assert values(launch) == {"--model": "m", "--a": "1"}
    assert "has no `\\` at its end" in launch.cuts[0]
    (launch,) = read("swift sft --model m  # the base \\\n  --a 1\n").launches
    assert values(launch) == {"--model": "m"}
    assert "a comment ends the command" in launch.cuts[0]


def test_a_comment_stops_what_is_joined_below_missing_backslashes(read: Read) -> None:
    (launch,) = read("swift sft --model m\n  --a 1\n  --b 2 \\\n  # --c 3\n  --d 4\n").launches
    assert values(launch) == {"--model": "m", "--a": "1", "--b": "2"}
    joined, lost = launch.cuts
    assert "2 lines" in joined
    assert "line 4: a comment ends the command; --d below it" in lost
    assert launch.lost == (lost,)


def test_of_several_commands_each_is_joined_with_its_own_lines(read: Read) -> None:
    one, two = read("swift sft\n--model a\n--n 1\nswift rlhf\n--model b\n--n 2\n").launches
    assert values(one) == {"--model": "a", "--n": "1"}
    assert values(two) == {"--model": "b", "--n": "2"}
    assert "line 1," in one.cuts[0]
    assert "line 4," in two.cuts[0]


def test_a_sourced_file_that_forgets_a_backslash_names_no_comment(read: Read, tmp_path: Path) -> None:
    (tmp_path / "more.sh").write_text("swift sft --model m\n  --a 1\n")
    (launch,) = read("source more.sh\n").launches
    assert "line 1 has no `\\` at its end, so bash ends the command there; --a below it are not given" in launch.cuts[0]
    assert launch.maybe_lost == launch.cuts


@pytest.mark.parametrize(
    "asked",
    ["llamafactory-cli train -h", "swift sft --help", "python train.py --version", "torchrun -m pkg.train --help --n 1",
     "python train_ppo.py --cfg job", "llamafactory-cli env", "llamafactory-cli version"],
)  # fmt: skip
def test_a_program_that_is_asked_for_its_help_or_version_trains_nothing(read: Read, asked: str) -> None:
    script = read(f"{asked}\nswift rlhf --model m\n")
    assert [launch.program for launch in script.launches] == ["swift rlhf"]
    assert not read(asked + "\n").launches


@pytest.mark.parametrize("given", ["--version v1", "-h 8", "--n 1 --helper x"])
def test_an_option_of_that_name_with_a_value_is_a_setting(read: Read, given: str) -> None:
    assert [launch.program for launch in read(f"python train.py {given} --model m\n").launches] == ["train.py"]


OWN = "--output_dir o --per_device_train_batch_size 4"


@pytest.mark.parametrize(
    "launcher",
    ["torchrun --nproc_per_node 4", "torchrun --nproc_per_node 4 --", "deepspeed", "accelerate launch", "srun python"],
)
def test_what_a_launcher_of_ranks_starts_is_the_launch_whatever_its_name(read: Read, launcher: str) -> None:
    (launch,) = read(f"python convert.py --a 1\n{launcher} run_chat.py {OWN}\n").launches
    assert (launch.program, launch.partial, launch.notes) == ("run_chat.py", False, ())


@pytest.mark.parametrize(
    "text", [f"torchrun convert_hf.py {OWN}", "torchrun run_chat.py", "deepspeed run_chat.py --help"]
)
def test_other_work_and_questions_of_a_launcher_are_no_launch(read: Read, text: str) -> None:
    assert not [launch for launch in read(text + "\n").launches if launch.argv]


def test_a_named_training_stands_before_what_else_a_launcher_starts(read: Read) -> None:
    script = read(f"torchrun run_chat.py {OWN}\ntorchrun train.py --model m\n")
    assert [launch.program for launch in script.launches] == ["train.py"]


def test_a_launch_that_was_quoted_line_by_line_is_read_without_its_marks(read: Read) -> None:
    script = read("> torchrun --nproc_per_node=2 \\\n>   src/grpo.py \\\n>   --bf16 true\n")
    assert (script.launches[0].program, values(script.launches[0])) == ("src/grpo.py", {"--bf16": "true"})
    with pytest.raises(EditRefused):
        rewrite(script, 0, [EditRequest("--bf16", "false")])


def test_lines_that_bash_glues_together_count_as_meant_and_an_edit_parts_them(read: Read) -> None:
    script = read("python -m verl.trainer.main_ppo a.b=64\\\nc.d=1\\\n+e.f=x \\\ng.h=2\n")
    (launch,) = script.launches
    assert values(launch) == {"a.b": "64", "c.d": "1", "e.f": "x", "g.h": "2"}
    assert "add the blank" in " ".join(launch.notes)
    changed = rewrite(script, 0, [EditRequest("c.d", "3")])[0].new
    assert changed == b"python -m verl.trainer.main_ppo a.b=64 \\\nc.d=3 \\\n+e.f=x \\\ng.h=2\n"


def test_what_bash_showed_under_set_x_is_the_command(read: Read) -> None:
    (launch,) = read("+ N=4\n++ date\n+ python3 -m verl.trainer.main_ppo a.b=4\n").launches
    assert values(launch) == {"a.b": "4"}


@pytest.mark.parametrize(
    ("line", "processes"),
    [
        ("python train.py --deepspeed z3.json", 1),
        ("python train.py --n 1", None),
        ("torchrun --nproc_per_node 4 train.py --deepspeed z3.json", None),
        ("deepspeed train.py --deepspeed z3.json", None),
        ("accelerate launch train.py --deepspeed z3.json", None),
    ],
)
def test_python_alone_starts_one_process_whatever_would_share(read: Read, line: str, processes: int | None) -> None:
    assert read(line + "\n").launches[0].processes == processes


@pytest.mark.parametrize("end", ["`\nand it died\n", "", " \\\n"])
def test_a_command_that_markdown_shows_as_code_is_read(read: Read, end: str) -> None:
    (launch,) = read(f"I ran:\n`python3 -m verl.trainer.main_ppo a.b=4 \\\n  c.d=2{end}").launches
    assert values(launch) == {"a.b": "4", "c.d": "2"}


def test_where_one_comment_was_put_in_afterwards_so_were_the_others(read: Read) -> None:
    (launch,) = read(
        "torchrun grpo.py \\\n  --bf16 \\  # on\n  --model_name_or_path m \\\n"
        "  --num_generations 6 \\  # died\n  --b 48\n"
    ).launches
    assert values(launch)["--num_generations"] == "6"
    assert values(launch)["--b"] == "48"
    assert [note.startswith("2 comments") for note in launch.notes] == [True]
