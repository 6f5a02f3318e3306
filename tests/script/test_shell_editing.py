"""Edits of shell scripts: exactly what was asked, where it wins, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.script.document import EditRefused, EditRequest, Value, apply_edits
from advisor.script.edit import rewrite
from advisor.script.proof import check
from tests.heavy import examples
from tests.script.conftest import Edited, Read

CHAIN = """#!/bin/bash
set -x
O=True
BS=8
export X=1
python3 -m verl.trainer.main_ppo \\
    a.n=$BS \\
    a.o=$O \\
    b.o=$O \\
    +a.plus=$HOME \\
    a.q="0.5" $@ 2>&1 | tee run.log
"""


def test_a_literal_that_decides_one_setting_is_edited_in_place(edited: Edited) -> None:
    assert edited(CHAIN, EditRequest("a.n", "4")) == CHAIN.replace("BS=8", "BS=4")
    assert edited(CHAIN, EditRequest("a.q", "0.25")) == CHAIN.replace('"0.5"', '"0.25"')


def test_a_shared_literal_gets_an_override_behind_the_last_argument(edited: Edited) -> None:
    assert edited(CHAIN, EditRequest("a.o", "False")) == CHAIN.replace(" $@ 2>&1", " $@ \\\n    a.o=False 2>&1")


def test_a_backslash_that_the_file_ends_with_stays_at_its_end(edited: Edited) -> None:
    script = 'A=(a.o=1)\npython3 -m verl.trainer.main_ppo \\\n  b=$X \\\n  "${A[@]}" \\'
    assert edited(script, EditRequest("a.n", "4")) == script[:-2] + " \\\n  a.n=4 \\"


def test_an_override_of_an_appended_key_is_add_or_override(edited: Edited) -> None:
    assert "    ++a.plus=x 2>&1" in edited(CHAIN, EditRequest("a.plus", "x"))


def test_the_comment_stands_above_the_whole_command(edited: Edited) -> None:
    assert edited(CHAIN, EditRequest("a.q", "0.25", "why")) == CHAIN.replace('"0.5"', '"0.25"').replace(
        "python3", "# rl-oom-advisor: why\npython3"
    )


def test_a_comment_never_lands_inside_a_chain_a_string_or_a_heredoc(edited: Edited) -> None:
    script = (
        "cat > /dev/null <<EOF\n x\nEOF\nA=1 \\\nB='two\nlines' \\\n  nohup \\\n  python3 train_ppo.py \\\n  --lr 1\n"
    )
    assert edited(script, EditRequest("--lr", "2", "why")) == script.replace("--lr 1", "--lr 2").replace(
        "A=1", "# rl-oom-advisor: why\nA=1"
    )


OPTIONS = "deepspeed train_sft.py \\\n   --a 1 \\\n   --flag \\\n   --list x y \\\n   --last z\n"


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("--flag", None, "   --flag \\\n", ""),
        ("flag", None, "   --flag \\\n", ""),
        ("--last", None, " \\\n   --last z", ""),
        ("--list", ("x", "z"), "x y", "x z"),
        ("--list", "one", "x y", "one"),
        ("--a", "it's", "--a 1", '--a "it\'s"'),
        ("--new", (), "--last z", "--last z \\\n   --new"),
        ("new", "5", "--last z", "--last z \\\n   --new 5"),
        ("--flag", "true", "--flag", "--flag true"),
    ],
)
def test_options_are_changed_added_and_removed(
    edited: Edited, key: str, value: Value | None, old: str, new: str
) -> None:
    assert edited(OPTIONS, EditRequest(key, value)) == OPTIONS.replace(old, new)


def test_a_missing_final_newline_stays_missing_and_windows_line_endings_become_those_of_bash(edited: Edited) -> None:
    script = "python3 train_ppo.py \\\r\n  --a 1 \\\r\n  --b 2"
    assert edited(script, EditRequest("--c", "3", "why"), EditRequest("--a", "5")) == (
        "# rl-oom-advisor: why\npython3 train_ppo.py \\\n  --a 5 \\\n  --b 2 \\\n  --c 3"
    )


def test_one_line_stays_one_line(edited: Edited) -> None:
    assert edited("torchrun train.py --a 1 > x.log", EditRequest("--b", "2")) == "torchrun train.py --a 1 --b 2 > x.log"


def test_only_the_launch_that_was_named_changes(edited: Edited) -> None:
    script = "C='--lr 1'\npython3 train_a.py $C\npython3 train_b.py $C\n"
    assert edited(script, EditRequest("--lr", "2"), launch=1) == script.replace("train_b.py $C", "train_b.py $C --lr 2")


def test_a_setting_of_a_shared_config_file_is_overridden_at_the_launch(edited: Edited, tmp_path) -> None:
    (tmp_path / "config.yaml").write_text("worker:\n  n: 5\n")
    script = "python3 -m verl.trainer.main \\\n    config=config.yaml\n"
    assert edited(script, EditRequest("worker.n", "4")) == script.replace(
        "config.yaml", "config.yaml \\\n    worker.n=4"
    )


def test_a_deepspeed_file_is_edited_itself(read: Read, tmp_path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    script = read("deepspeed train_sft.py --deepspeed ds.json\n")
    (changed,) = rewrite(script, 0, [EditRequest("deepspeed:zero_optimization.stage", "3")])
    assert changed.document.path.name == "ds.json"
    assert changed.new == b'{"zero_optimization": {"stage": 3}}'


def test_environment_is_edited_where_the_workers_see_it(edited: Edited) -> None:
    assert edited(CHAIN, EditRequest("X", "2", kind="environment")) == CHAIN.replace("X=1", "X=2")
    assert edited(CHAIN, EditRequest("Y", "a b", kind="environment")) == CHAIN.replace(
        "python3", "export Y='a b'\npython3"
    )
    prefixed = "A=1 \\\nB=2 \\\nswift rlhf --a 1\n"
    assert edited(prefixed, EditRequest("B", "3", kind="environment")) == prefixed.replace("B=2", "B=3")
    ray = 'ray job submit --runtime-env-json=\'{"working_dir": "/x"}\' -- python3 -m openrlhf.cli.train_ppo_ray --a 1\n'
    assert edited(ray, EditRequest("M", "1", kind="environment")) == ray.replace("'{", '\'{"env_vars": {"M": "1"}, ')


def test_a_change_that_would_move_something_else_is_refused(read: Read) -> None:
    script = read("C='--flag --lr 1'\npython3 train_a.py $C\npython3 train_b.py $C\n")
    with pytest.raises(EditRefused, match="also decides"):
        rewrite(script, 0, [EditRequest("--flag", None)])
    with pytest.raises(EditRefused, match="has no launch 8"):
        rewrite(script, 7, [EditRequest("--lr", "2")])


words = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cf", "Co", "Cn")), max_size=12)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=words, key=st.sampled_from(["a.n", "a.o", "a.q", "new.key"]), comment=words)
def test_any_value_reads_back_and_leaves_every_other_byte_alone(read: Read, value: str, key: str, comment: str) -> None:
    script = read(CHAIN)
    wanted = [EditRequest(key, value, comment)]
    (changed,) = rewrite(script, 0, wanted)[:1] or (None,)
    if changed is None:
        assert script.launches[0].effective()[key].value == value
        return
    assert all(item.held is not False for item in check(script, 0, wanted, [changed]))
    assert apply_edits(changed.document.data, changed.edits) == changed.new
    touched = changed.touched[key]
    assert changed.new[touched.start : touched.end].decode().strip("'\"").startswith(value[:1].strip("'\"\\$`"))
