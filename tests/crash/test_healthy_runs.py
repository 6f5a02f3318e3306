"""Nothing is diagnosed where nothing failed, whatever a log says about memory on the way."""

import json

import pytest

from advisor.cli import main
from tests.loops import each

from .healthy_hard import COMPLETION, HARD, TORCH, cut_off
from .known import judge


@each("name", HARD)
def test_a_run_that_is_well_is_told_so_whenever_somebody_looks(name):
    for log in (HARD[name], *cut_off(HARD[name])):
        crash = judge(log)
        assert (crash.verdict, crash.memory, crash.signature) == ("not_oom", "none", "")
        assert not any(one.role == "cause" and one.memory != "none" for one in crash.evidence)


@pytest.mark.parametrize("name", HARD)
def test_the_command_ends_with_nothing_to_diagnose_and_advises_nothing(name, tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text(HARD[name], newline="")
    assert main(["diagnose", "--log", str(log), "--gpus", "8xH100-80GB", "--format", "json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert (told["crash"]["verdict"], told["plan"]) == ("not_oom", [])


def test_an_error_after_which_the_run_goes_on_was_caught_and_is_a_warning():
    crash = judge(f"step:1 - a:1\nWARNING batch skipped: {TORCH}\nstep:2 - a:1\nstep:3 - a:1\nstep:4 - a:1\n")
    assert (crash.verdict, crash.signature) == ("not_oom", "")
    assert [(one.signature, one.role) for one in crash.evidence if one.signature == "torch-oom"] == [
        ("torch-oom", "warning")
    ]


def test_an_error_after_which_the_counters_stand_still_ended_the_run():
    assert judge(f"step:7 - a:1\n{TORCH}\nwandb: global_step 7\nwandb: step 7\nstep:7 - a:1\n").verdict == "oom"


def test_the_failure_after_a_caught_one_is_the_cause():
    steps = "".join(f"step:{number} - a:1\n" for number in range(2, 6))
    crash = judge(
        f"step:1 - a:1\nskipped: {TORCH}\n{steps}RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    assert (crash.verdict, crash.signature) == ("not_oom", "illegal-access")


def test_a_quoted_message_does_not_hide_a_real_one_at_the_end():
    assert judge(COMPLETION).signature == ""
    crash = judge(f"{COMPLETION}\n(WorkerDict pid=5) {TORCH.replace('2.00 GiB', '3.06 GiB')}\n")
    assert (crash.verdict, crash.memory, crash.evidence[0].line) == ("oom", "gpu", len(COMPLETION.splitlines()) + 1)
