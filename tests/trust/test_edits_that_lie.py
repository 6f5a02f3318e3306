"""Every form in which a change once said "written" and did not arrive, or took others with it: exact, or refused.

Exact: bash, Python and YAML's own loader run the file before and after, and nothing but the one setting is other; and
all settings of all launches, read again, say the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.cli import main
from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.launch import Script
from advisor.script.proof import check
from advisor.script.reader import read_again, read_script
from tests.script.as_python import trained
from tests.script.test_launched_as_changed import effective, launches

RUN = "python3 -m verl.trainer.main_ppo"
MB = "data.train_batch_size"
LAUNCH = f"{RUN} {MB}=$MB data.max_prompt_length=3\n"
HEAD = "from trl import GRPOConfig, GRPOTrainer\n"
TRAIN = "GRPOTrainer(model='org/M-1B', args=cfg).train()\n"
BATCH = "batch_size"
ACTORS = "actors:\n  - mb: 8\n    lr: 1\n  - mb: 4\nmodel: x\n"
DATA = "from dataclasses import dataclass\n@dataclass\n"
OWN = "class My(GRPOConfig):\n    batch_size: int = 4\n"
SUPER = "class My(GRPOConfig):\n    def __init__(self, **given):\n        super().__init__(batch_size=4, **given)\n"
AFTER = "class A(GRPOConfig):\n    lr: int = 1\n    def __post_init__(self):\n        self.batch_size = 4\n"
BESIDE = {
    "two.yaml": "train_batch_size: 8\n---\ntrain_batch_size: 4\n",
    "sub/env.sh": "MB=8\n",
    "env.sh": "MB=4\n",
    "sub/run2.sh": LAUNCH.replace("$MB", "8"),
}

Form = tuple[str, str, str]
"""File, text and the key that is changed."""


def bash(text: str, key: str = MB) -> Form:
    return "run.sh", text, key


def python(text: str) -> Form:
    return "t.py", text, BATCH


def trl(text: str) -> Form:
    return python(f"{HEAD}{text}{TRAIN}")


def config(text: str, key: str = "mb") -> Form:
    return "m.yaml", text, key


EXACT: dict[str, Form] = {
    "printf --": bash(f"printf -v M -- '{MB}=%d a.b=1' 8\n{RUN} $M data.max_prompt_length=3\n"),
    "a call with **": trl("common = dict(batch_size=8)\ncfg = GRPOConfig(output_dir='x', **common)\n"),
    "** as it stands": trl("cfg = GRPOConfig(output_dir='x', **{'batch_size': 8})\n"),
    "** beside the key": trl("common = dict(lr=1)\ncfg = GRPOConfig(batch_size=8, **common)\n"),
    "a derived class": trl(f"{OWN}cfg = My()\n"),
    "a derived class that is named so": trl(
        f"{OWN}class MyConfig(My):\n    lr: int = 2\ncfg = MyConfig(output_dir='x')\n"
    ),
    "a derived dataclass": trl(f"{DATA}{OWN}cfg = My()\n"),
    "a derived dataclass, and its call": trl(f"{DATA}{OWN}cfg = My(batch_size=8)\n"),
    "derived from a derived dataclass": trl(
        f"{DATA}{OWN}class MyConfig(My):\n    batch_size: int = 8\ncfg = MyConfig(lr=3)\n"
    ),
    "another name of the class": python(
        "from trl import GRPOConfig as Conf, GRPOTrainer as Tr\ncfg = Conf(batch_size=8)\n"
        "Tr(model='org/M-1B', args=cfg).train()\n"
    ),
    "a list's element": config(ACTORS, "actors.0.mb"),
    "a merge key": config("b: &b {mb: 8, lr: 1}\nactor:\n  <<: *b\n  x: 1\nref:\n  <<: *b\n", "actor.mb"),
    "two merge keys": config("a: &a {mb: 8}\nb: &b {lr: 1}\nactor:\n  <<: [*a, *b]\n  x: 1\n", "actor.mb"),
    "an interpolation": config("mb: 8\nactor:\n  mb: ${mb}\nref:\n  mb: ${mb}\n", "actor.mb"),
    "readonly": bash(f"readonly MB=8\nMB=4\n{LAUNCH}"),
    "lastpipe": bash(f"shopt -s lastpipe\nMB=4\necho 8 | read MB\n{LAUNCH}"),
    "a trap": bash(f"MB=8\ntrap 'MB=4' DEBUG\n{LAUNCH}"),
    "a default": bash(f"{RUN} {MB}=${{MB:-8}} data.max_prompt_length=3\n"),
    "words behind bash -s": bash(f"bash -s -- 8 <<'E'\n{LAUNCH.replace('$MB', '$1')}E\n"),
    "a list of merge keys": config("<<:\n  - {mb: 8}\n  - {mb: 4, lr: 1}\nx: 1\n"),
    "a merge key in quotes": config('a: &a {mb: 8}\nc:\n  "<<": *a\n  mb: 4\n', "c.mb"),
    "a string in a loop": bash(f"for r in 0 1; do\n  bash -c \"{RUN} {MB}=8 a.log='r$r'\"\ndone\n"),
    "a string of several lines": bash(f'MB=8\nbash -c "\n  {RUN} \\\\\n  {MB}=$MB a.b=$MB c.d=\\$HOME\n"\n'),
    "a script that the script writes": bash(f"MB=8\ncat > a.sh <<E\n{LAUNCH}E\nbash a.sh\n"),
    "what Slurm exports": bash(f'#SBATCH --export=ALL,MB=1\nMB=8\nbash -c "{RUN} {MB}=$MB a.b=\\$MB"\n'),
    "brackets in brackets": bash(f"A=(2 8)\ni=3\n{RUN} {MB}=${{A[i % ${{#A[@]}}]}} a.n=1\n"),
    "a value that a loop sets itself": bash(f"while [ -z $D ]; do\nD=1\nMB=8\n{LAUNCH}done\n"),
    "cd before a file": bash(f"cd sub\nsource ./env.sh\n{LAUNCH}"),
    "a test that only bash knows, run by sh": bash(f'#!/bin/sh\nif [ "$X" == "" ]; then MB=8; else MB=4; fi\n{LAUNCH}'),
    "a row of a table": trl(
        "B = dict(lr=1)\nP = {'a': {**B, 'batch_size': 8}, 'b': {'batch_size': 8}}\nuse = 'a'\n"
        "cfg = GRPOConfig(output_dir='x', **P[use])\n"
    ),
    "a function that is exported": bash(
        f"go() {{ {RUN} {MB}=$2 a.n=$1; }}\nexport -f go\necho 1 | xargs -I{{}} bash -c 'go {{}} 8'\n"
    ),
    "pushd before a file": bash(f"pushd sub >/dev/null\nsource ./env.sh\npopd >/dev/null\n{LAUNCH}"),
}
REFUSED: dict[str, tuple[Form, str]] = {
    "behind --": (bash(f"{RUN} a.b=1 -- data.jsonl\n"), "What stands behind `--` is no option"),
    "one text over a glob of configs": (
        bash("for f in c/*.yaml; do\n  llamafactory-cli train $f\ndone\n", BATCH),
        r"\$f is set anew in a loop",
    ),
    "an array's element set in every round": (
        bash(f"A=(a.b=1 {MB}=8)\nuntil {RUN} ${{A[@]}}; do\n  A[1]={MB}=8\ndone\n"),
        r"\$A is set anew in a loop",
    ),
    "a dash of a word processor": (bash(f"{RUN} a.b=1 \u2013-lr 8\n"), "a dash that no program takes"),
    "a template": (bash(f"{{% for n in sizes %}}\n{RUN} {MB}={{{{ n }}}}\n{{% endfor %}}\n"), "is a template"),
    "a node's rank": (bash(f"MB=$(( SLURM_NODEID == 0 ? 4 : 8 ))\n{LAUNCH}"), "another one in every run"),
    "a parameter of a function that is handed on": (
        python(f"{HEAD}def f(n):\n    cfg = GRPOConfig(batch_size=n)\n    {TRAIN}jobs.map_array(f, [8, 4])\n"),
        "is what each call of f gives it",
    ),
    "what a callback sets": (
        python(
            f"{HEAD}class C:\n    def on_step_begin(self, args, step):\n        args.batch_size = 16\n"
            f"args = GRPOConfig(batch_size=8)\n{TRAIN.replace('cfg', 'args')}"
        ),
        "may be changed by line 4",
    ),
    "a number that the file asserts": (
        trl("cfg = GRPOConfig(batch_size=8)\nall = cfg.batch_size * 4\nassert all == 32\n"),
        "Line 4 stops the run",
    ),
    "a list's element, in brackets": (config(ACTORS, "actors[0].mb"), r"is called actors\.0\.mb"),
    "a list's element that is not there": (config(ACTORS, "actors[7].mb"), "an element that the file does not have"),
    "a mapping": (
        config("worker:\n  actor:\n    mb: 8\n    model: {p: q}\n", "worker.actor"),
        "holds further settings",
    ),
    "under a value": (config("worker:\n  actor: 8\n", "worker.actor.mb"), "already a plain value"),
    "an anchor": (config("mb: &mb 8\nactor:\n  mb: *mb\n"), r"an alias that also sets actor\.mb"),
    "xargs": (bash(f"echo {MB}=3 | xargs {RUN} {MB}=8\n"), "xargs puts what it reads behind"),
    "two configs": (
        python(f"{HEAD}a = GRPOConfig(batch_size=8)\nb = GRPOConfig(batch_size=4)\n"),
        "set in lines 2, 3, and nothing tells which",
    ),
    "a derived class that makes itself": (
        trl(f"{SUPER}cfg = My(output_dir='x')\n"),
        "may be changed by line 4 while the file runs",
    ),
    "a derived class that changes what it is given": (
        trl(f"{SUPER.replace('super', 'given.pop(0)' + chr(10) + '        super')}cfg = My(batch_size=8)\n"),
        "may be changed by line 3 while the file runs",
    ),
    "given by position": (trl(f"{DATA}{OWN}cfg = My('x', 8)\n"), "may be changed by line 6 while the file runs"),
    "what a derived class does once it is made": (
        trl(f"{DATA}{AFTER}@dataclass\nclass B(A):\n    output_dir: str = 'y'\ncfg = B(lr=2)\n"),
        "may be changed by line 7 while the file runs",
    ),
    "a config made in a way that is not read": (
        trl("from functools import partial\nmake = partial(GRPOConfig, batch_size=8)\ncfg = make(lr=1)\n"),
        r"gets make\(lr=1\) \(line 4\), of which batch_size cannot be read",
    ),
    "several documents": (config("mb: 8\n---\nmb: 4\n"), "holds 2 documents"),
    "a key that stands twice": (config("mb: 8\nlr: 1\nmb: 4\n"), "stands in lines 1, 3 of .*: keep one of them"),
    "two documents beside the command": (
        bash("python3 train.py --config two.yaml --train_batch_size 4\n", "--train_batch_size"),
        "holds 2 documents",
    ),
    "what a loop varies": (
        bash(f"for MB in 8 4; do\n{RUN} {MB}=$MB a.name=n$MB\ndone\n"),
        "starts [23] launches, each with values of its own",
    ),
    "what a copy takes over": (
        python(
            f"from dataclasses import replace\n{HEAD}cfg = GRPOConfig(batch_size=8)\nlong = replace(cfg, lr=1)\n"
            f"{TRAIN}{TRAIN.replace('cfg', 'long')}"
        ),
        "may be changed by line 4",
    ),
    "what a loop halves": (
        bash(f"MB=8\nuntil {LAUNCH}do\nMB=$((MB/2))\ndone\n"),
        r"another one in every run \(\$MB is set anew in a loop\)",
    ),
    "a row of a table": (
        bash(f"while read -r name MB; do\n{LAUNCH}done <<'E'\na 8\nb 4\nE\n"),
        r"another one in every run \(\$MB is set anew",
    ),
    "a task of a job array": (
        bash(f"#SBATCH --array=0-1\nA=(8 4)\nMB=${{A[$SLURM_ARRAY_TASK_ID]}}\n{LAUNCH}"),
        "another one in every run",
    ),
    "a draw": (bash(f"A=(8 4)\nMB=${{A[RANDOM % ${{#A[@]}}]}}\n{LAUNCH}"), "another one in every run"),
    "a trial's choice": (
        trl("def f(trial):\n    cfg = GRPOConfig(batch_size=trial.suggest_int('b', 1, 8))\n    "),
        "another one in every run",
    ),
    "a key that is taken away behind": (bash(f"{RUN} {MB}=8 ~{MB}\n"), f"is taken away by ~{MB}"),
    "several runs of hydra": (bash(f"{RUN} --multirun {MB}=8,4\n"), "several values, one for each run"),
    "an array, run by sh": (bash(f"#!/usr/bin/env sh\nA=({MB}=8 a.b=1)\n{RUN} ${{A[@]}}\n"), "where it is dash"),
}
FOLLOWS = config("mb: 8\nactor:\n  mb: ${mb}\nref:\n  mb: ${mb}\n")


def run(file: Path) -> list[dict[str, Any]]:
    """What each launch gets, by bash, by Python with made-up classes, by YAML's loader."""
    if file.suffix == ".sh":
        return [dict(effective(arguments)) for arguments in launches(file.parent)]
    if file.suffix == ".yaml":
        return [dict(_flat("", yaml.safe_load(file.read_text())))]
    return trained(file.read_text())


def _flat(path: str, value: Any) -> list[tuple[str, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        return [(path, value)]
    return [pair for name, each in inner for pair in _flat(f"{path}.{name}".lstrip("."), each)]


def made(tmp_path: Path, name: str, text: str) -> Path:
    folder = tmp_path / "case"
    for file, content in {**BESIDE, name: text}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
    return folder / name


def settings(script: Script) -> list[dict[str, Any]]:
    return [{key: one.value for key, one in launch.effective().items()} for launch in script.launches]


def written(file: Path, key: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All settings before and after, as they are read; every check of the proof holds. Writes the change."""
    script, wanted = read_script(file), [EditRequest(key, "2")]
    rewrites = rewrite(script, 0, wanted)
    assert [item for item in check(script, 0, wanted, rewrites) if item.held is False] == []
    again = read_again(script, rewrites)
    for done in rewrites:
        done.document.path.write_bytes(done.new)
    return settings(script), settings(again)


@pytest.mark.parametrize("form", EXACT)
def test_it_is_exact(form: str, tmp_path: Path) -> None:
    name, text, key = EXACT[form]
    file = made(tmp_path, name, text)
    ran = run(file)
    before, after = written(file, key)
    # PyYAML resolves no interpolation, and of several that are merged 6.0.4 takes another one than 6.0.3
    told, is_text = before[0].get(key), name.endswith(".sh") or not ("${" in text or form == "a list of merge keys")
    assert not is_text or told in (None, str(ran[0].get(key)))
    assert after == [{**launch, key: "2"} for launch in before]
    assert [{name: str(value) for name, value in got.items()} for got in run(file)] == [
        {**{name: str(value) for name, value in got.items()}, key: "2"} for got in ran
    ]


@pytest.mark.parametrize("form", REFUSED)
def test_it_is_refused_with_the_reason(form: str, tmp_path: Path) -> None:
    (name, text, key), reason = REFUSED[form]
    file = made(tmp_path, name, text)
    with pytest.raises(EditRefused, match=reason):
        rewrite(read_script(file), 0, [EditRequest(key, "2")])


def test_what_follows_by_interpolation_moves_and_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, text, key = FOLLOWS
    file = made(tmp_path, name, text)
    ((before,), (after,)) = written(file, key)
    assert after == dict.fromkeys(before, "2")
    file.write_text(text)
    assert main(["set", str(file), "mb=2", "-o", str(tmp_path / "out.yaml")]) == 0
    assert "what follows from it: actor.mb=2, ref.mb=2" in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 1])
def test_no_other_launch_gets_anything_else(first: int, tmp_path: Path) -> None:
    text = f"MB=8\n{LAUNCH}MORE=$MB\n{RUN} {MB}=$MORE data.max_prompt_length=4\n"
    file = made(tmp_path, "run.sh", text)
    script = read_script(file)
    try:
        done = rewrite(script, first, [EditRequest(MB, "2")])
    except EditRefused:
        pytest.fail("both launches have a place for it")
    ran = run(file)
    for one in done:
        one.document.path.write_bytes(one.new)
    assert run(file) == [{**got, **({MB: "2"} if number == first else {})} for number, got in enumerate(ran)]


def test_one_call_of_a_function_gets_it_and_the_other_keeps_its_own(tmp_path: Path) -> None:
    text = f"run() {{ {RUN} {MB}=$1 data.max_prompt_length=3; }}\nrun 8\nrun 4\n"
    file = made(tmp_path, "run.sh", text)
    written(file, MB)
    assert [launch[MB] for launch in run(file)] == ["2", "4"]


def test_a_counter_beside_a_launch_in_a_loop_is_none_of_its_settings(tmp_path: Path) -> None:
    file = made(tmp_path, "run.sh", f"n=0\nwhile [ $n -lt 2 ]; do\n  {RUN} {MB}=8 a.b=$n\n  n=$((n+1))\ndone\n")
    written(file, MB)
    assert [(launch[MB], launch["a.b"]) for launch in run(file)] == [("2", "0"), ("2", "1")]


def test_a_job_of_ray_has_the_variables_that_it_is_given(tmp_path: Path) -> None:
    job = """ray job submit --runtime-env-json='{"env_vars": {"N": "8"}}' -- bash -c '"""
    script = read_script(made(tmp_path, "run.sh", f"N=16\n{job}{RUN} {MB}=${{N:-4}} a.b=1'\n"))
    assert settings(script)[0][MB] == "8"


def test_a_variable_that_a_written_file_holds_too_stays(tmp_path: Path) -> None:
    text = f'N=8\ncat > ds.json <<E\n{{"most": 1e$N}}\nE\n{RUN} {MB}=$N data.max_prompt_length=3\n'
    file = made(tmp_path, "run.sh", text)
    written(file, MB)
    assert file.read_text().startswith("N=8\n")


TRAINER = "GRPOTrainer('org/M', args=cfg).train()\n"
PARSED = f"from trl import TrlParser\n{HEAD}cfg = TrlParser(GRPOConfig).parse_args_and_config()[0]\n{TRAINER}"
GENERATIONS = "num_generations"
PARSERS: dict[str, tuple[str, str, str, str]] = {
    "a file or options": (
        f"import sys\nfrom transformers import HfArgumentParser\n{HEAD}p = HfArgumentParser(GRPOConfig)\n"
        f"cfg = p.parse_yaml_file('a')[0] if len(sys.argv) == 2 else p.parse_args_into_dataclasses()[0]\n{TRAINER}",
        "accelerate launch train.py grpo.yaml",
        GENERATIONS,
        r"written .*grpo\.fits\.yaml\nwritten .*run\.fits\.sh",
    ),
    "a whole key": (
        f"from omegaconf import OmegaConf\n{HEAD}cfg = GRPOConfig(**OmegaConf.from_cli().trainer)\n{TRAINER}",
        "accelerate launch train.py trainer.num_generations=16",
        GENERATIONS,
        r"is no whole name here: trainer\.num_generations",
    ),
    "no options at all": (
        f"import sys, yaml\n{HEAD}_, path = sys.argv\ncfg = GRPOConfig(**yaml.safe_load(open(path)))\n{TRAINER}",
        "curl -o grpo.yaml http://x\naccelerate launch train.py grpo.yaml",
        GENERATIONS,
        "may write",
    ),
    "click's dashes": (
        "import click\n@click.command()\n@click.option('--num-generations', type=int)\ndef main(**given): ...\n",
        "python train.py",
        GENERATIONS,
        "written",
    ),
    "a DeepSpeed file whose product must agree": (
        PARSED,
        "accelerate launch train.py --deepspeed all.json --gradient_accumulation_steps 2",
        "gradient_accumulation_steps",
        r"written .*all\.fits\.json\nwritten .*run\.fits\.sh",
    ),
    "an option changed after it is read": (
        f"import after\nfrom trl import TrlParser\n{HEAD}cfg = TrlParser(GRPOConfig).parse_args_and_config()[0]\n"
        f"after.change(cfg)\n{TRAINER}",
        "accelerate launch train.py --num_generations 8",
        GENERATIONS,
        r"may be changed by line 2 of after\.py",
    ),
    "options handed to what is not here": (
        f"import elsewhere\nfrom trl import TrlParser\n{HEAD}cfg = TrlParser(GRPOConfig).parse_args_and_config()[0]\n"
        f"cfg = elsewhere.change(cfg)\n{TRAINER}",
        "accelerate launch train.py --num_generations 8",
        GENERATIONS,
        r"hands its options to elsewhere\.change, which is not here",
    ),
    "a class that changes what it is given": (
        f"from dataclasses import dataclass\nfrom trl import TrlParser\n{HEAD}@dataclass\nclass My(GRPOConfig):\n"
        "    def __post_init__(self):\n        self.num_generations = 16\n"
        f"cfg = TrlParser(My).parse_args_and_config()[0]\n{TRAINER}",
        "accelerate launch train.py --num_generations 8",
        GENERATIONS,
        r"may be changed by line 7 of train\.py",
    ),
    "an option of another subcommand": (
        "import argparse\np = argparse.ArgumentParser()\ns = p.add_subparsers()\na = s.add_parser('a')\n"
        "a.add_argument('--lr')\nb = s.add_parser('b')\nb.add_argument('--num_generations')\np.parse_args()\n",
        "python train.py a --lr 1",
        GENERATIONS,
        "is an option of b, not of a",
    ),
    "one of several words": (
        "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--num_generations', type=int, choices=[8, 16])\np.parse_args()\n",
        "python train.py --num_generations 8",
        GENERATIONS,
        "takes one of 8, 16",
    ),
    "a key that hydra's config has not": (
        "import hydra\n@hydra.main(config_name='grpo')\ndef main(cfg): ...\n",
        "python train.py max_completion_length=1",
        "trainer.bs",
        "has no trainer.bs, and hydra stops at it",
    ),
    "an option that an autotuner owns": (
        PARSED,
        "deepspeed --autotuning run train.py --deepspeed tuned.json --per_device_train_batch_size 8",
        "per_device_train_batch_size",
        "DeepSpeed replaces --per_device_train_batch_size itself",
    ),
    "a config that cannot be loaded": (
        PARSED,
        "accelerate launch train.py --config torn.yaml",
        GENERATIONS,
        r"torn\.yaml, line",
    ),
    "rounds that differ in it": (
        "",
        f"MB=8\nfor n in 8 6 4; do\n  [ $n = 4 ] && MB=4\n  {RUN} a.n=$n {MB}=$MB\ndone",
        MB,
        "starts [23] launches, each with values of its own",
    ),
    "a program of which nothing is known": (
        "",
        "python train_it.py --lr 1",
        "--size",
        "Nothing tells that train_it.py takes",
    ),
    "a DeepSpeed file that must agree": (
        PARSED,
        "accelerate launch train.py --deepspeed ds.json --per_device_train_batch_size 8",
        "per_device_train_batch_size",
        r"written .*ds\.fits\.json\nwritten .*run\.fits\.sh",
    ),
    "a DeepSpeed file that must agree with what nobody knows": (
        PARSED,
        "accelerate launch --gradient_accumulation_steps $(cat ga) train.py --gradient_accumulation_steps 8",
        "gradient_accumulation_steps",
        "is unknown, which gradient_accumulation_steps must agree with",
    ),
}


@pytest.mark.parametrize("form", PARSERS)
def test_a_python_file_gets_only_options_that_it_takes(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, command, key, told = PARSERS[form]
    file = made(tmp_path, "run.sh", f"{command}\n")
    for name, text in {
        "train.py": program,
        "grpo.yaml": "num_generations: 8\nmax_completion_length: 2048\n",
        "after.py": "def change(made):\n    made.num_generations = 16\n",
        "ds.json": '{"train_micro_batch_size_per_gpu": 8}',
        "all.json": '{"train_batch_size": 64}',
        "tuned.json": '{"autotuning": {"arg_mappings": {"m": "--per_device_train_batch_size"}}}',
        "torn.yaml": "<<<<<<< HEAD\nnum_generations: 8\n=======\n",
    }.items():
        file.with_name(name).write_text(text)
    main(["set", str(file), f"{key}=4", "--launch", "1"])
    assert re.search(told, capsys.readouterr().err)
    new = {"ds": '{"train_micro_batch_size_per_gpu": 4}', "all": '{"train_batch_size": 128}'}
    copies = {one: file.with_name(f"{one}.fits.json") for one in new}
    assert all(not copy.exists() or copy.read_text() == new[one] for one, copy in copies.items())
    made_file = file.with_name("run.fits.sh")
    assert made_file.exists() == told.startswith("written")
    assert told != "written" or made_file.read_text().endswith(" --num-generations 4\n")


def test_what_is_changed_only_where_nothing_was_given_is_exact(tmp_path: Path) -> None:
    program = (
        f"from trl import TrlParser\n{HEAD}cfg = TrlParser(GRPOConfig).parse_args_and_config()[0]\n"
        f"if cfg.num_generations is None:\n    cfg.num_generations = 2\ncfg.lr = cfg.lr or 1\n{TRAINER}"
    )
    file = made(
        tmp_path, "run.sh", "accelerate launch train.py --num_generations 8 --max_grad_norm 0.5 --deepspeed ds.json\n"
    )
    file.with_name("train.py").write_text(program)
    file.with_name("ds.json").write_text('{"gradient_clipping": 1}')
    assert main(["set", str(file), "num_generations=4", "max_grad_norm=1.0"]) == 0
    assert "--num_generations 4 --max_grad_norm 1.0" in file.with_name("run.fits.sh").read_text()


@pytest.mark.parametrize("name", ["job.yaml", "own.yaml"])
def test_a_key_that_nobody_reads_is_not_added(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"job.yaml": "apiVersion: v1\nkind: Pod\nspec: {batch: 8}\n", "own.yaml": "lr: 1\nlength: 8\n"}
    told = {"job.yaml": "read by Kubernetes, which takes no batch_size", "own.yaml": "nothing tells that its program"}
    assert main(["set", str(made(tmp_path, name, texts[name])), f"{BATCH}=2"]) == 2
    assert told[name] in capsys.readouterr().err


def test_what_the_framework_would_stop_at_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = made(
        tmp_path, "run.sh", "accelerate launch --num_processes 8 grpo.py --per_device_train_batch_size 8 "
        "--num_generations 8 --max_completion_length 9 --learning_rate 1\n"
    )  # fmt: skip
    assert main(["set", str(file), "num_generations=3"]) == 2
    assert "TRL would stop" in capsys.readouterr().err
    assert main(["set", str(file), "num_generations=3", "per_device_train_batch_size=3"]) == 0


def test_one_call_gets_an_override_among_its_words_or_none_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'run() {{ {RUN} {MB}=8 a.b=1 "$@"; }}\nrun c.d=1\nrun c.d=2 | cat\n'
    file = made(tmp_path, "run.sh", text)
    assert main(["set", str(file), f"{MB}=2", "--launch", "2"]) == 0
    assert file.with_name("run.fits.sh").read_text() == text.replace("c.d=2", f"c.d=2 {MB}=2")
    file.write_text(f"run() {{ {RUN} {MB}=8 a.b=$S; }}\nS=1 run\nS=2 run\n")
    assert main(["set", str(file), f"{MB}=2", "--launch", "2"]) == 2
    assert "without --launch all of them get it" in capsys.readouterr().err


def test_a_switch_takes_no_value_and_what_counts_no_longer_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--fast', action='store_true')\n"
    file = made(tmp_path, "run.sh", "python train.py --size $1\n")
    file.with_name("train.py").write_text(f"{program}p.add_argument('--size')\np.parse_args()\n")
    assert main(["set", str(file), "fast=true", "size=4"]) == 0
    assert file.with_name("run.fits.sh").read_text() == "python train.py --size $1 --fast --size 4\n"
    assert "--size no longer follows what it was given" in capsys.readouterr().err


ARGPARSE = "import argparse\np = argparse.ArgumentParser()\np.add_argument({})\na = p.parse_args()\n"
PAIR = ARGPARSE.format("'--gc', action=argparse.BooleanOptionalAction")
PEFT = "from peft import LoraConfig\nimport os\n"
CLICK = (
    "import click\n@click.command()\n@click.option('--packing/--no-packing', default=True)\ndef main(packing): ...\n"
)
TYRO = "import tyro\nclass A:\n    packing: bool = True\ntyro.cli(A)\n"
APPENDED: dict[str, tuple[dict[str, str], str, str]] = {
    "a pair of argparse": ({"train.py": PAIR, "run.sh": "python train.py --no-gc"}, "gc=true", " --gc"),
    "off again": ({"train.py": PAIR, "run.sh": "python -m train"}, "gc=false", " --no-gc"),
    "a pair of click": ({"train.py": CLICK, "run.sh": "python train.py"}, "packing=false", " --no-packing"),
    "a pair of tyro": ({"train.py": TYRO, "run.sh": "python train.py"}, "packing=false", " --no-packing"),
    "a constant": (
        {
            "train.py": ARGPARSE.format("'--bf16', dest='d', action='store_const', const='b'"),
            "run.sh": "python train.py",
        },
        "d=b",
        " --bf16",
    ),
    "any text is true": (
        {"train.py": ARGPARSE.format("'--gc', type=bool"), "run.sh": "python train.py"},
        "gc=False",
        "",
    ),
    "its place": ({"train.py": ARGPARSE.format("'size'"), "run.sh": "python train.py 8"}, "size=4", ""),
    "known ones alone": (
        {
            "train.py": ARGPARSE.format("'--bs'").replace("a = p.parse_", "a, _ = p.parse_known_"),
            "run.sh": "python train.py",
        },
        "size=4",
        "",
    ),
    "an option of another name": (
        {
            "train.py": ARGPARSE.format("'--rank'") + PEFT + "LoraConfig(r=int(a.rank))\n",
            "run.sh": "python train.py --x",
        },
        "r=4",
        " --rank 4",
    ),
    "a file of hydra's alone": (
        {
            "run.sh": "python -m areal.launcher.local t.py --config c.yaml",
            "c.yaml": "actor: {path: x}\ngconfig: {a: 1}\n",
        },
        "actor.gradient_checkpointing=true",
        " ++actor.gradient_checkpointing=true",
    ),
    "its own spelling": ({"run.sh": "axolotl train x.yaml"}, "micro_batch_size=2", " --micro-batch-size 2"),
    "no words at all": ({"run.sh": "python start_rlvr_pipeline.py --config_name c"}, "response_length=2", ""),
    "what bash cannot parse": ({"run.sh": "if true; then\npython train.py --size 8"}, "size=4", ""),
}


@pytest.mark.parametrize("form", APPENDED)
def test_an_argument_is_appended_only_as_the_program_takes_it(form: str, tmp_path: Path) -> None:
    files, change, added = APPENDED[form]
    file = made(tmp_path, "run.sh", "")
    for name, text in files.items():
        file.with_name(name).write_text(f"{text}\n")
    main(["set", str(file), change])
    new = file.with_name("run.fits.sh")
    assert (new.read_text() if new.exists() else "") == (f"{files['run.sh']}{added}\n" if added else "")


def test_the_script_of_a_kubernetes_job_is_changed_in_its_block(tmp_path: Path) -> None:
    head = "apiVersion: batch/v1\nkind: Job\nspec:\n  command: [sh, -c]\n"
    text = f"{head}  args:\n    - |\n      python train.py --size 8\n  n: 8\n"
    file = made(tmp_path, "job.yaml", text)
    assert main(["set", str(file), "size=4"]) == 0
    assert file.with_name("job.fits.yaml").read_text() == text.replace("size 8", "size 4")


def test_an_option_of_the_launcher_stays_before_the_program(tmp_path: Path) -> None:
    text = "accelerate launch --num_processes 8 grpo.py --num_generations 8 --max_completion_length 9 --beta 1\n"
    file = made(tmp_path, "run.sh", text)
    assert main(["set", str(file), "num_processes=4"]) == 0
    assert file.with_name("run.fits.sh").read_text() == text.replace("processes 8", "processes 4")


LOADED = f"{HEAD}import json\nwith open('c.json') as f:\n    c = json.load(f)\ncfg = GRPOConfig(**c['train'])\n{TRAIN}"
TWICE = f"{HEAD}a = GRPOConfig(batch_size=8)\n{TRAIN.replace('cfg', 'a')}cfg = GRPOConfig(batch_size=8)\n{TRAIN}"
LISTED = "import subprocess\nn = 8\nsubprocess.run(['torchrun', 'train.py', '--size', str(n), '--lr', '1'])\n"
SOURCES: dict[str, tuple[str, str, str, str, str, str]] = {
    "a loaded file": ("t.py", LOADED, BATCH, "1", "c.fits.json", '{"train": {"batch_size": 2}, "batch_size": 8}\n'),
    "one of two trainers": ("t.py", TWICE, BATCH, "1", "t.fits.py", TWICE.replace("=8", "=2", 1)),
    "the other": ("t.py", TWICE, BATCH, "2", "t.fits.py", TWICE.replace("=8", "=2").replace("=2", "=8", 1)),
    "a here-document": (
        "run.sh",
        f"python - <<'E'\n{HEAD}cfg = GRPOConfig(batch_size=8)\n{TRAIN}E\n",
        BATCH,
        "1",
        "run.fits.sh",
        f"python - <<'E'\n{HEAD}cfg = GRPOConfig(batch_size=2)\n{TRAIN}E\n",
    ),
    "words of a command": ("t.py", LISTED, "size", "1", "t.fits.py", LISTED.replace("n = 8", "n = 2")),
}  # fmt: skip


@pytest.mark.parametrize("form", SOURCES)
def test_a_setting_is_changed_where_a_python_file_takes_it_from(form: str, tmp_path: Path) -> None:
    name, text, key, launch, changed, expected = SOURCES[form]
    file = made(tmp_path, name, text)
    file.with_name("c.json").write_text('{"train": {"batch_size": 8}, "batch_size": 8}\n')
    main(["set", str(file), f"{key}=2", "--launch", launch])
    assert file.with_name(changed).read_text() == expected
