"""Python configs, told and edited, beside what Python makes of them: exact, or said to be unknown, or refused."""

from __future__ import annotations

import itertools
import re
import shlex
import types
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.launch import Script
from advisor.script.reader import read_script
from tests.script.as_python import trained

KEY = "batch_size"
HEAD = "import dataclasses, os\nfrom trl import GRPOConfig, GRPOTrainer\n"
TAIL = "\nGRPOTrainer(model='org/M-1B', args=cfg).train()\n"
MAKE = "cfg = GRPOConfig(output_dir='x', batch_size=n)"
KNOWN = {
    "a variable": f"n = 8\n{MAKE}",
    "set anew before": f"n = 8\nn = 4\n{MAKE}",
    "set anew behind": f"n = 8\n{MAKE}\nn = 4",
    "halved": f"n = 8\nn //= 2\n{MAKE}",
    "two at once": f"m, n = 4, 8\n{MAKE}",
    "one function's and another's": "n = 8\ndef f(n):\n    return n\n" + MAKE,
    "of its own function": "n = 8\ndef f():\n    n = 4\n    cfg = GRPOConfig(batch_size=n)\n    return cfg\ncfg = f()",
    "only there": f"if True:\n    n = 8\n{MAKE}",
    "in the program's own part": "n = 8\nif __name__ == '__main__':\n    n = 4\n    " + MAKE,
    "an attribute behind": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size = 4",
    "an attribute twice": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size = 4\ncfg.batch_size = 16",
    "an attribute alone": "cfg = GRPOConfig(output_dir='x')\ncfg.batch_size = 4",
    "its dictionary": "cfg = GRPOConfig(batch_size=8)\ncfg.__dict__['batch_size'] = 4",
    "spread": "common = dict(batch_size=8)\ncfg = GRPOConfig(output_dir='x', **common)",
    "spread as it stands": "cfg = GRPOConfig(output_dir='x', **{'batch_size': 8})",
}
OPEN = {
    "under a condition": f"n = 8\nif os.environ.get('NOTHING'):\n    n = 4\n{MAKE}",
    "in a loop": f"n = 1\nfor _ in range(3):\n    n *= 2\n{MAKE}",
    "of a loop": f"for n in (8, 4):\n    pass\n{MAKE}",
    "global": f"n = 8\ndef f():\n    global n\n    n = 4\nf()\n{MAKE}",
    "tried": f"n = 8\ntry:\n    n = int('4')\nexcept ValueError:\n    n = 2\n{MAKE}",
    "an attribute under a condition": "cfg = GRPOConfig(batch_size=8)\nif cfg:\n    cfg.batch_size = 4",
    "an attribute halved": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size //= 2",
    "setattr": "cfg = GRPOConfig(batch_size=8)\nsetattr(cfg, 'batch_size', 4)",
    "setattr of anything": "cfg = GRPOConfig(batch_size=8)\nfor k in ('batch_size',):\n    setattr(cfg, k, 4)",
    "replaced": "cfg = GRPOConfig(batch_size=8)\ncfg = dataclasses.replace(cfg, batch_size=4)",
    "spread and changed": "common = dict(batch_size=8)\ncommon.update(batch_size=4)\ncfg = GRPOConfig(**common)",
    "what another thing says, too": (
        "class C:\n    batch_size: int = 8\nc = C()\ncfg = GRPOConfig(batch_size=c.batch_size, lr=c.batch_size * 2)"
    ),
    "for every seed": f"def f(n, seed):\n    {MAKE}\n    return cfg\nfor seed in (1, 2):\n    cfg = f(8, seed)",
    "by a function's parameter": "def f(c):\n    c.batch_size = 4\ncfg = GRPOConfig(batch_size=8)\nf(cfg)",
    "by a function around it": "def f(c):\n    c.batch_size = 4\n    return c\ncfg = f(GRPOConfig(batch_size=8))",
    "by a class": "class My(GRPOConfig):\n    def __post_init__(self):\n        self.batch_size = 4\ncfg = My()",
    "in a loop over it": "cfg = GRPOConfig(batch_size=8)\nfor c in [cfg]:\n    c.batch_size = 4",
    "vars": "cfg = GRPOConfig(batch_size=8)\nvars(cfg).update(batch_size=4)",
    "a method of it": "cfg = GRPOConfig(batch_size=8)\nf = cfg.__dict__.update\nf(batch_size=4)",
    "object.__setattr__": "cfg = GRPOConfig(batch_size=8)\nobject.__setattr__(cfg, 'batch_size', 4)",
    "one of two by a condition": "cfg = GRPOConfig(batch_size=4)\nif len('x'):\n    cfg = GRPOConfig(batch_size=8)",
    "one of two by a failure": "try:\n    cfg = GRPOConfig(x=1)\nexcept TypeError:\n    cfg = GRPOConfig(batch_size=8)",
    "one of a list": "a = [GRPOConfig(batch_size=4), GRPOConfig(batch_size=8)]\ncfg = a[0]",
    "named on the way": "cfg = GRPOConfig(batch_size=(n := 8))\nprint(end=str(n)[:0])",
    "by globals": f"n = 4\ndef f():\n    globals()['n'] = 8\nf()\n{MAKE}",
    "by exec": f"n = 4\nexec('n = 8')\n{MAKE}",
    "its own environment": "os.environ['N'] = '8'\ncfg = GRPOConfig(batch_size=int(os.environ.get('N', 4)))",
    "by a trainer's args": "cfg = GRPOConfig(batch_size=8)\nt = GRPOTrainer(args=cfg)\nt.args.batch_size //= 2",
}


def run(text: str) -> int | None:
    """What the trainer that trains last gets."""
    return trained(text)[-1].get(KEY)


def read(folder: Path, body: str):
    (folder / "run.py").write_text(HEAD + body + TAIL)
    return read_script(folder / "run.py")


@pytest.mark.parametrize("name", [*KNOWN, *OPEN])
def test_what_is_told_is_what_the_trainer_gets(name: str, tmp_path: Path) -> None:
    body = {**KNOWN, **OPEN}[name]
    setting = read(tmp_path, body).launches[0].effective().get(KEY)
    if name in KNOWN:
        assert setting.value == str(run(HEAD + body + TAIL))
    else:
        assert setting is None or not setting.resolved


@pytest.mark.parametrize("name", [*KNOWN, *OPEN])
def test_what_is_set_is_what_the_trainer_gets(name: str, tmp_path: Path) -> None:
    script = read(tmp_path, {**KNOWN, **OPEN}[name])
    with suppress(EditRefused) if name in OPEN else nullcontext():
        (done,) = rewrite(script, 0, [EditRequest(KEY, "2")])
        assert run(done.new.decode()) == 2


def test_of_two_trainers_with_a_config_each_nobody_guesses(tmp_path: Path) -> None:
    body = "a = GRPOConfig(batch_size=8)\ncfg = GRPOConfig(batch_size=4)\nGRPOTrainer(args=a).train()"
    with pytest.raises(EditRefused, match="nothing tells which of them"):
        rewrite(read(tmp_path, body), 0, [EditRequest(KEY, "2")])
    body = "cfg = GRPOConfig(batch_size=8)\nGRPOTrainer(args=cfg).train()"
    assert rewrite(read(tmp_path, body), 0, [EditRequest(KEY, "2")])


OTHER = "class SFTConfig(GRPOConfig):\n    pass\nclass SFTTrainer(GRPOTrainer):\n    pass\n"
FIRST = "a = SFTConfig(batch_size=8)\nSFTTrainer(args=a).train()\n"


def test_of_two_trainings_of_other_kinds_the_last_one_is_told_and_changed(tmp_path: Path) -> None:
    for own in ("batch_size=4", "output_dir='x'"):
        script = read(tmp_path, f"{OTHER}{FIRST}cfg = GRPOConfig({own})")
        found = script.launches[0].effective().get(KEY)
        assert (found.value if found else None) == ("4" if own == "batch_size=4" else None)
        assert any("SFTTrainer, GRPOTrainer" in note for note in script.launches[0].notes)
        (done,) = rewrite(script, 0, [EditRequest(KEY, "2")])
        assert b"SFTConfig(batch_size=8)" in done.new
        assert run(done.new.decode()) == 2


def test_of_two_trainings_in_functions_nobody_guesses(tmp_path: Path) -> None:
    functions = (
        "def f():\n    a = SFTConfig(batch_size=8)\n    SFTTrainer(args=a).train()\n"
        "def g():\n    cfg = GRPOConfig(batch_size=4)\n    GRPOTrainer(args=cfg).train()\n"
    )
    (tmp_path / "run.py").write_text(f"{HEAD}{OTHER}{functions}f() if os.environ.get('SFT') else g()\n")
    script = read_script(tmp_path / "run.py")
    assert not script.launches[0].effective()[KEY].resolved
    with pytest.raises(EditRefused, match="nothing tells which"):
        rewrite(script, 0, [EditRequest(KEY, "2")])


def test_a_config_that_no_trainer_gets_says_nothing_of_the_run(tmp_path: Path) -> None:
    script = read(
        tmp_path,
        "from trl import TrainingArguments\nargs = TrainingArguments(batch_size=4)\ncfg = GRPOConfig(output_dir='x')",
    )
    assert KEY not in script.launches[0].effective()


def test_what_is_set_behind_the_training_no_training_gets(tmp_path: Path) -> None:
    body = "cfg = GRPOConfig(batch_size=8)\nt = GRPOTrainer(args=cfg)\nt.train()\nt.args.batch_size = 4\n"
    (tmp_path / "run.py").write_text(HEAD + body)
    assert read_script(tmp_path / "run.py").launches[0].effective()[KEY].value == "8" == str(run(HEAD + body))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("cfg = GRPOConfig(batch_size=8)\ncfg.output_dir = str(cfg.batch_size * 3)", "also decides output_dir"),
        ("c = dict(batch_size=8)\nother = GRPOTrainer(**c)\ncfg = GRPOConfig(**c)", "stands in c, which other calls"),
        (
            "for n in (4, 8):\n    cfg = GRPOConfig(batch_size=n)\n    GRPOTrainer(args=cfg).train()",
            "every round of line 3",
        ),
        (f"def f(n):\n    {MAKE}\n    GRPOTrainer(args=cfg).train()\nfor n in (4, 8):\n    f(n)", "each call of f"),
        (f"def f(n):\n    {MAKE}\n    GRPOTrainer(args=cfg).train()\n[f(*n) for n in [(4,), (8,)]]", "each call of f"),
        ("for c in [{'batch_size': 4}, {}]:\n    cfg = GRPOConfig(**c)\n    GRPOTrainer(args=cfg).train()", "among"),
    ],
)
def test_what_decides_more_than_the_setting_is_refused(body: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match=why):
        rewrite(read(tmp_path, body), 0, [EditRequest(KEY, "2")])


def test_a_default_that_is_set_anew_is_not_the_first_one(tmp_path: Path) -> None:
    body = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=4)\n"
        "p.set_defaults(n=8)\nargs = p.parse_args([])\ncfg = GRPOConfig(batch_size=args.n)"
    )
    assert not read(tmp_path, body).launches[0].effective()[KEY].resolved


WORDS = "torchrun train.py --output_dir o --n 8 --lr 1"
SIGNS = WORDS.replace(" --n", " --x 'a b' --n").replace(" --", " \\\n --") + "\n"
LISTED = str(WORDS.split())
STARTED = {
    "a text": f"os.system('{WORDS}')",
    "a text with signs": f"os.system({SIGNS!r})",
    "several lines": f'os.system("""{SIGNS}""")',
    "a list": f"subprocess.run({LISTED})",
    "a list by its name": f"cmd = {LISTED}\nprint(cmd, end='')\nsubprocess.run(cmd, check=True)",
    "what is filled in": f"lr = 1\nsubprocess.run({LISTED[:-4]} f'{{lr}}', str(lr), lr])",
    "split": f"subprocess.run('{WORDS}'.split())",
    "split by shlex": f"c = '{WORDS}'\nsubprocess.run(shlex.split(c))",
    "its code": f"print(subprocess.run({LISTED}).returncode, end='')",
    "its code kept": f"code = subprocess.run({LISTED}).returncode",
    "kept": f"one = subprocess.Popen({LISTED}, text=True)",
    "waited for": f"subprocess.run({LISTED}).check_returncode()",
    "a shell of its own": f"subprocess.run(['bash', '-c', 'cd . && {WORDS}'])",
}
OUT = f"OUT = 'o/p'\nos.makedirs(OUT)\nos.system(f'{WORDS} --out {{OUT}}')"
ANEW = {
    "longer": "cmd += ['--n', '4']",
    "another one": "cmd[-3] = '4'",
    "by its place": "cmd[cmd.index('--n') + 1] = '4'",
    "cut": "cmd = cmd[:-4] + ['--n', '4']",
    "by another name": "c = cmd\nc[-3] = '4'",
    "by a function": "def f(c):\n    c[-3] = '4'\nf(cmd)",
    "every one": "cmd = [one.replace('8', '4') for one in cmd]",
    "chained": "cmd = list(itertools.chain(cmd, ['--n', '4']))",
}
NOT_TOLD = {
    **{name: f"cmd = {LISTED}\nprint(' '.join(cmd), end='')\n{how}\nsubprocess.run(cmd)" for name, how in ANEW.items()},
    "two names at once": f"c = cmd = {LISTED}\nc[-3] = '4'\nsubprocess.run(cmd)",
    "put together": f"subprocess.run({LISTED} + more)",
    "more behind": f"subprocess.run([{LISTED[1:-1]}, *more])",
    "more from a call": f"def f(*more):\n    subprocess.run([{LISTED[1:-1]}, *more])\nf('--n', '4')",
    "more from a list": f"def f(a, *more):\n    subprocess.run([{LISTED[1:-1]}, *more])\nf(*['', '--n', '4'])",
    "more from a loop": f"for one in [['--n', '4']]:\n    subprocess.run([{LISTED[1:-1]}, *one])",
    "more from elsewhere": f"from string import digits\nsubprocess.run([{LISTED[1:-1]}, *['--n', digits[:1]]])",
    "replaced": f"cmd = '{WORDS}'\ncmd = cmd.replace('8', '4')\nos.system(cmd)",
    "its own default": f"def f(n='4'):\n    subprocess.run({LISTED} + ['--n', n])\nf(**{{'n': '8'}})",
}
ADDED = {
    "in a text": f"os.system('{WORDS}')",
    "behind what is filled in": OUT,
    "before the log": OUT.replace("{OUT}'", "{OUT} > {OUT}/log'"),
    "by its name": OUT.replace("os.system(", "c = (") + "\nos.system(c)",
    "in quotes of three": OUT.replace("f'", 'f"""').replace("}')", '}""")'),
    "of another text": OUT.replace("{OUT}'", "' + OUT"),
    "of a text made longer": OUT.replace("os.system(", "c = (") + "\nc += '/x'\nos.system(c)",
    "of a function": "def f(c):\n    os.system(c)\n" + OUT.replace("os.system", "f"),
}
IN_ENVIRONMENT = {
    "handed over": "os.environ['A'] = '1'\nsubprocess.run(cmd, env={**os.environ, 'A': '8'})",
    "as a dictionary": "os.environ['A'] = '1'\nsubprocess.run(cmd, env=dict(os.environ, A='8'))",
    "put together": "env = {'A': '1'}\nsubprocess.run(cmd, env=os.environ | env | {'A': '8'})",
    "updated": "env = os.environ.copy()\nenv['A'] = '1'\nenv.update(A='8')\nsubprocess.run(cmd, env=env)",
    "added": "env = {'A': '1'}\nenv |= {'A': '8'}\nsubprocess.run(cmd, env=env)",
    "of itself": "env = {'A': '8'}\nenv = {**env, 'B': '1'}\nsubprocess.run(cmd, env=env)",
    "by keywords": (
        "def f(**more):\n    env = {'A': '1'}\n    env.update(more)\n    subprocess.run(cmd, env=env)\nf(A='8')"
    ),
}


def python_file(folder: Path, body: str) -> Script:
    (folder / "run.py").write_text(f"import itertools, os, shlex, subprocess\nmore = []\n{body}\n")
    return read_script(folder / "run.py")


@pytest.mark.parametrize("name", [*STARTED, *NOT_TOLD])
def test_a_command_that_a_file_starts_is_changed_where_it_stands(name: str, tmp_path: Path) -> None:
    script = python_file(tmp_path, {**STARTED, **NOT_TOLD}[name])
    if not script.launches[0].argv:
        assert name in NOT_TOLD
        return
    with suppress(EditRefused) if name in NOT_TOLD else nullcontext():
        (done,) = rewrite(script, 0, [EditRequest("--n", "2")])
        before, after = (_WORD.findall(" ".join(started(one.decode()))) for one in (done.document.data, done.new))
        at = len(after) - after[::-1].index("--n")  # the last one counts
        assert [*before[:at], "2", *before[at + 1 :]] == after != before


@pytest.mark.parametrize("name", ADDED)
def test_a_word_more_goes_behind_the_command_and_into_no_value(name: str, tmp_path: Path) -> None:
    script = python_file(tmp_path, ADDED[name])
    with suppress(EditRefused) if " of a" in f" {name}" else nullcontext():
        (done,) = rewrite(script, 0, [EditRequest("--more", "2")])
        before, after = started(done.document.data.decode()), started(done.new.decode())
        assert [one.replace(" --more 2", "") for one in after] == before
        assert [" --more 2" in one for one in after] == ["torchrun" in one for one in before]


@pytest.mark.parametrize("name", IN_ENVIRONMENT)
def test_the_environment_that_a_command_is_handed_wins(name: str, tmp_path: Path) -> None:
    script = python_file(tmp_path, f"cmd = {LISTED}\n{IN_ENVIRONMENT[name]}")
    assert script.launches[0].environment["A"] == "8"
    (done,) = rewrite(script, 0, [EditRequest("A", "2", kind="environment")])
    assert done.new == done.document.data.replace(b"8'", b"2'").replace(b"'2', '--lr'", b"'8', '--lr'")


@pytest.mark.parametrize(
    "body",
    [
        "with open('c.yaml', 'w') as f:\n    yaml.dump(made, f)",
        "yaml.dump(made, open('c.yaml', 'w'))",
        "P = Path(__file__).parent / 'c.yaml'\nP.write_text(yaml.dump(made))",
        "OmegaConf.save(made, 'c.yaml')",
        "with open('c.yaml', 'w') as f:\n    print(made, file=f)",
        "def save(a, b):\n    with open(b, 'w') as f:\n        f.writelines(a)\nsave(made, 'c.yaml')",
        "shutil.copyfile('b.yaml', 'c.yaml')",
    ],
)
def test_a_file_that_the_program_writes_is_not_the_one_that_lies_there(body: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("learning_rate: 1.0\n")
    start = "\nos.system('torchrun train.py --config c.yaml')"
    assert "learning_rate" not in python_file(tmp_path, body + start).launches[0].effective()
    read_only = "made = yaml.safe_load(open('c.yaml'))\nshutil.copy('c.yaml', 'b.yaml')"
    assert "learning_rate" in python_file(tmp_path, read_only + start).launches[0].effective()


def test_a_variable_of_the_environment_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("export M=a/b\npython run.py\n")
    python_file(tmp_path, "subprocess.run(['torchrun', 'train.py', '--m', os.environ['M']])")
    assert read_script(tmp_path / "run.sh").launches[0].effective()["--m"].value == "a/b"


_WORD = re.compile(r"[^\s'\",\[\]\\]+")


def started(text: str) -> list[str]:
    """What a Python file starts, with nothing started, and the folders that it makes."""
    got: list[str] = []

    def run(one: object, **_: object) -> types.SimpleNamespace:
        got.append(str(one))
        return types.SimpleNamespace(returncode=0, check_returncode=list)

    module = types.SimpleNamespace(system=run, run=run, Popen=run, makedirs=run, environ={})
    exec(text.partition("\n")[2], {"os": module, "subprocess": module, "shlex": shlex, "itertools": itertools})
    return got
