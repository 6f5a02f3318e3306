"""Many launch files in one call: a line each, annotations on the line that decides, a table, JSON, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.exits import Exit
from tests.loops import each

SFT = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --tuner_type {tuner} --deepspeed zero3 --max_length 2048 \\\n"
FITS = SFT.format(tuner="lora") + "    --per_device_train_batch_size 1\n"
SOME = SFT.format(tuner="full") + "    --per_device_train_batch_size 12\n"
ROWS = "#!/bin/bash\n" + SFT.format(tuner="full") + "    --logging_steps 5 \\\n    --per_device_train_batch_size 64\n"
OVER = "#!/bin/bash\nNPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-72B --tuner_type full --deepspeed zero2\n"
UNKNOWN = "NPROC_PER_NODE=8 swift sft --model nobody/knows-this --tuner_type full\n"
NONE = "#!/bin/bash\necho nothing to train\n"
BOX = ["--gpus", "8xA100-80GB", "--host-ram", "900GB"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {"fits": FITS, "rows": ROWS, "some": SOME, "over": OVER, "unknown": UNKNOWN, "none": NONE}
    for name, text in texts.items():
        (tmp_path / f"{name}.sh").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_each_file_has_its_line_in_the_order_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["estimate", "over.sh", "rows.sh", "./fits.sh", "unknown.sh", "none.sh", "gone.sh", *BOX])
        == Exit.DOES_NOT_FIT
    )
    told = lines(capsys)
    assert [one.split(": ")[:2] for one in told] == [
        ["over.sh:2", "does not fit"],
        ["rows.sh:4", "may not fit"],
        ["fits.sh:1", "fits"],
        ["unknown.sh:1", "cannot be said"],
        ["none.sh", "starts no training"],
        ["gone.sh", "cannot be read"],
    ]
    assert "per_device_train_batch_size is 64; up to" in told[1]


@each(
    ("files", "code", "strict"),
    [
        (["fits.sh", "none.sh"], Exit.DONE, Exit.DONE),
        (["fits.sh", "rows.sh"], Exit.DONE, Exit.DOES_NOT_FIT),
        (["fits.sh", "unknown.sh"], Exit.DONE, Exit.CANNOT_BE_SAID),
        (["unknown.sh"], Exit.DONE, Exit.CANNOT_BE_SAID),
        (["unknown.sh", "gone.sh"], Exit.UNUSABLE, Exit.UNUSABLE),
        (["gone.sh", "over.sh", "unknown.sh"], Exit.DOES_NOT_FIT, Exit.DOES_NOT_FIT),
    ],
)
def test_the_exit_code_is_that_of_the_worst(files: list[str], code: Exit, strict: Exit) -> None:
    assert main(["estimate", *files, *BOX]) == code
    assert main(["estimate", *files, *BOX, "--strict"]) == strict


def test_how_far_a_setting_goes_is_searched_for_only_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("advisor.run_file.sizes_of", lambda *given: asked.append(given))
    assert main(["estimate", "fits.sh", "fits.sh", *BOX]) == Exit.DONE
    assert asked == []
    assert main(["estimate", "fits.sh", "over.sh", *BOX]) == Exit.DOES_NOT_FIT
    assert len(asked) == 1


def test_annotations_stand_on_the_line_that_decides_and_no_name_can_break_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a,line=9::b%.sh").write_text(FITS)
    main(["estimate", "over.sh", "rows.sh", "a,line=9::b%.sh", "--format", "github", *BOX])
    over, rows, odd = lines(capsys)
    assert over.startswith("::error file=over.sh,line=2,title=does not fit::")
    assert rows.startswith("::warning file=rows.sh,line=4,title=may not fit::")
    assert odd.startswith("::notice file=a%2Cline=9%3A%3Ab%25.sh,line=1,title=fits::")


def test_the_table_has_every_phase_and_is_no_markup_of_a_stranger(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "<img src=x>|`.sh").write_text(FITS)
    main(["estimate", "<img src=x>|`.sh", "over.sh", "--format", "markdown", *BOX])
    told = capsys.readouterr().out
    assert "<img" not in told
    rows = [one for one in told.splitlines() if one.startswith("| `")]
    assert [len(one.replace("\\|", "").split("|")) for one in rows] == [5, 5]
    assert told.count("| the optimizer step |") == 2


def test_json_holds_the_contract_and_the_same_estimate_as_alone(
    capsys: pytest.CaptureFixture[str], validate: Callable[[object, str], None]
) -> None:
    main(["estimate", "over.sh", "gone.sh", "none.sh", "--format", "json", *BOX])
    both = json.loads(capsys.readouterr().out)
    validate(both, "estimates")
    assert [one["ending"] for one in both["estimates"]] == ["does_not_fit", "unreadable", "no_launch"]
    main(["estimate", "over.sh", "--format", "json", *BOX])
    assert both["estimates"][0]["estimate"] == json.loads(capsys.readouterr().out)


def test_one_file_is_a_page_unless_lines_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["estimate", "fits.sh", *BOX])
    assert len(lines(capsys)) > 20
    main(["estimate", "fits.sh", "--format", "lines", *BOX])
    assert len(lines(capsys)) == 1


def test_the_hook_and_the_action_call_what_exists() -> None:
    import yaml

    root = Path(__file__).parents[2]
    hook, *_ = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())
    assert main([*hook["entry"].split()[1:], *hook["args"], "fits.sh", *BOX]) == Exit.DONE
    action = yaml.safe_load((root / "action.yml").read_text())
    steps = " ".join(step.get("run", "") for step in action["runs"]["steps"])
    assert {"--format github", "--format markdown"} <= {
        one for one in ("--format github", "--format markdown") if one in steps
    }


def test_how_much_ram_a_node_has_changes_nothing_of_the_cards(capsys: pytest.CaptureFixture[str]) -> None:
    heads = []
    for box in (BOX, BOX[:2]):
        main(["estimate", "some.sh", *box])
        heads.append(" ".join(capsys.readouterr().out.partition("\n\n")[0].split()))
    assert heads[0].startswith("It may not fit: ")
    assert heads[1].removeprefix(heads[0]).startswith(" Whether host RAM suffices cannot be said")
