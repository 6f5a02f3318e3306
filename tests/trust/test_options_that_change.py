"""What a program makes of its options, of a config that it loads, and of the config that its trainer gets, is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.python_later import changed_later
from advisor.script.reader import read_script
from advisor.script.write import write_all

PARSER = "import argparse, json, os, sys, yaml\np = argparse.ArgumentParser()\np.add_argument('--batch', type=int)\n"
READ = f"{PARSER}a = p.parse_args()\n"
CHANGES = {
    "a name of its own that is raised": f"{READ}n = a.batch\nif n < 4:\n    n = 4\ntrain(batch=n)\n",
    "a smallest number where it is handed on": f"{READ}train(batch=max(a.batch, 4))\n",
    "an entry of a copy": f"{READ}kw = dict(vars(a))\nkw['batch'] //= 2\n",
    "laid over": f"{READ}train(**{{**vars(a), 'batch': 4}})\n",
    "words sorted out": f"import sys\nsys.argv = [w for w in sys.argv if not w.startswith('--ba')]\n{READ}",
    "other words": f"{PARSER}words = ['--batch', '4']\na = p.parse_args(words)\n",
    "no words": f"{READ}a = p.parse_args([])\n",
    "unpacked and halved": f"{READ}n, m = a.batch, 1\nn = n // 2\ntrain(batch=n)\n",
    "a branch": f"{READ}n = a.batch if a.batch > 4 else 4\ntrain(batch=n)\n",
    "a function's argument": f"{READ}def make(n):\n    n = max(n, 4)\n    train(batch=n)\nmake(a.batch)\n",
    "what reads it": PARSER.replace("int)", "lambda s: max(4, int(s)))") + "a = p.parse_args()\n",
    "a property": f"{READ}class V:\n    @property\n    def n(self):\n        return a.batch * 2\ntrain(batch=V().n)\n",
    "a copy that is returned": f"{READ}def f(ns):\n    d = vars(ns).copy()\n    d['batch'] = 4\n    return d\nf(a)\n",
}
KEEPS = {
    "a name of its own": f"{READ}n = a.batch\nif n is None:\n    n = 4\ntrain(n)\n",
    "a name of another function": f"{READ}n = a.batch\ndef f(x):\n    n = x.size\n    return n\n",
    "through a function": f"{READ}def make(n):\n    train(batch=n)\nmake(a.batch)\n",
    "twice as many elsewhere": f"{READ}load(batch=2 * a.batch)\ntrain(batch=a.batch)\n",
    "another entry": f"{READ}train(**{{**vars(a), 'seed': 4}})\n",
    "torchrun's own words sorted out": f"import sys\nsys.argv = [w for w in sys.argv if 'local_rank' not in w]\n{READ}",
}
LOADS = f"{PARSER}c = yaml.safe_load(open(sys.argv[1]))\n"
OF_A_CONFIG = {
    "the environment laid over it": f"{LOADS}for k, v in os.environ.items():\n    c[k.lower()] = v\n",
    "another file laid over it": f"{LOADS}c = {{**c, **json.load(open('more.json'))}}\n",
    "halved": f"{LOADS}c['batch'] = c['batch'] // 2\n",
}
KEEPS_IT = {
    "laid over the options": f"{READ}for k, v in yaml.safe_load(open(a.config)).items():\n    setattr(a, k, v)\n",
    "entries of other data": f"{LOADS}d = json.load(open('data.json'))\nfor k in d:\n    d[k] = 1\n",
}
HEAD = "from trl import GRPOConfig, GRPOTrainer\n"
TRAIN = "GRPOTrainer(model='m', args=cfg).train()\n"
APART = {
    "of a module": f"{HEAD}from build import make\nold = GRPOConfig(batch=8)\ncfg = make()\n{TRAIN}",
    "a class method's": f"{HEAD}class My(GRPOConfig):\n    @classmethod\n    def small(cls):\n"
    f"        return cls(batch=4)\nold = GRPOConfig(batch=8)\ncfg = My.small()\n{TRAIN}",
    "a class reached by self": f"{HEAD}class Job:\n    cfg = GRPOConfig(batch=8)\n    def run(self):\n"
    f"        self.cfg.batch = 4\n        {TRAIN.replace('cfg', 'self.cfg')}Job().run()\n",
    "a name set inside": f"{HEAD}cfg = GRPOConfig(batch=max(4, (n := 8)), seed=n)\n{TRAIN}",
}


def test_what_changes_an_option_or_a_loaded_config_is_found(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    asked = [(CHANGES, "", True), (KEEPS, "", False), (OF_A_CONFIG, "c.yaml", True), (KEEPS_IT, "c.yaml", False)]
    wrong = []
    for forms, config, changes in asked:
        for name, text in forms.items():
            file.write_text(text)
            if (changed_later(file, "batch", (), config) is not None) is not changes:
                wrong.append(name)
    assert not wrong


def test_a_config_that_the_trainer_does_not_get_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    for name, text in APART.items():
        file.write_text(text)
        with pytest.raises(EditRefused):
            pytest.fail(f"{name}: {rewrite(read_script(file), 0, [EditRequest('batch', '2')])}")


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    old, new, folder = tmp_path / "a.sh", tmp_path / "b.json", tmp_path / "folder"
    old.write_bytes(b"old")
    folder.mkdir()
    with pytest.raises(EditRefused):
        write_all([(old, b"1", None), (new, b"2", None), (folder, b"3", None)], force=True)
    assert old.read_bytes() == b"old"
    assert {one.name for one in tmp_path.iterdir()} == {"a.sh", "folder"}
