"""Python scripts that call a trainer: each argument under the call it belongs to, with the literal that decides it."""

from __future__ import annotations

import pytest

from advisor.script.document import EditRefused, EditRequest
from tests.loops import each
from tests.script.conftest import Edited, Read, values

VARIABLES = """import torch
from trl import DPOConfig, DPOTrainer
from peft import LoraConfig, get_peft_model

BASE = "org/Some-8B"

def main(data):
    bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained("org/tokenizer")
    ref = AutoModelForCausalLM.from_pretrained("org/reference")
    model = AutoModelForCausalLM.from_pretrained(BASE, quantization_config=bnb, torch_dtype=torch.bfloat16).cuda()
    rank = 64
    adapter = LoraConfig(r=rank, lora_alpha=16, target_modules=["q_proj", "v_proj"], bias="none", task_type="CAUSAL_LM")
    model = get_peft_model(model, adapter)
    own = DPOConfig(output_dir="out", max_length=2048)
    DPOTrainer(model, ref_model=ref, args=own, train_dataset=data).train()
"""


def test_the_calls_of_a_training_are_followed_through_variables_and_functions(read: Read) -> None:
    (launch,) = read(VARIABLES, "train.py").launches
    found = values(launch)
    assert found["from_pretrained.0"] == "org/Some-8B"
    assert found["from_pretrained.torch_dtype"] == "bfloat16"
    assert found["BitsAndBytesConfig.load_in_4bit"] == "True"
    assert found["LoraConfig.r"] == "64"
    assert found["LoraConfig.target_modules"] == ("q_proj", "v_proj")
    assert (found["LoraConfig"], found["Trainer"]) == ("True", "DPOTrainer")
    assert (found["output_dir"], found["max_length"]) == ("out", "2048")
    assert "r" not in found
    assert set(launch.bases) == {"DPOConfig", "DPOTrainer", "trl.DPOConfig", "trl.DPOTrainer"}


def test_each_argument_of_a_call_has_the_bytes_that_decide_it(read: Read) -> None:
    (launch,) = read(VARIABLES, "train.py").launches
    for key, raw in {"LoraConfig.r": b"64", "from_pretrained.0": b'"org/Some-8B"', "max_length": b"2048"}.items():
        span = launch.effective()[key].span
        assert VARIABLES.encode()[span.start : span.end] == raw


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ('KTOTrainer(model="org/M-1B", args=KTOConfig(beta=0.1))', "Trainer.model", "org/M-1B"),
        ('SFTTrainer("org/M-1B", args=SFTConfig(max_length=8))', "Trainer.0", "org/M-1B"),
        ('T = GRPOConfig(model_init_kwargs={"dtype": torch.float16})', "model_init_kwargs.dtype", "float16"),
        ('T = GRPOConfig(model_init_kwargs=dict(load_in_4bit=True))',
         "model_init_kwargs.load_in_4bit", "True"),
        ('m, t = FastLanguageModel.from_pretrained(model_name="org/M", load_in_4bit=True)\n'
         "m = FastLanguageModel.get_peft_model(m, r=8)\nGRPOTrainer(model=m, args=GRPOConfig(a=1))",
         "get_peft_model.r", "8"),
        ('p = LoraConfig(r=4) if small else None\nRLOOTrainer(policy=m, config=RLOOConfig(a=1), peft_config=p)',
         "LoraConfig.r", "4"),
        ("class A:\n  def __init__(self):\n    self.p = LoraConfig(r=2)\n    RewardTrainer(peft_config=self.p)",
         "LoraConfig.r", "2"),
    ],
)  # fmt: skip
def test_a_trainer_is_set_up_in_many_ways(read: Read, text: str, key: str, value: str) -> None:
    (launch,) = read(text + "\n", "train.py").launches
    assert values(launch)[key] == value


def test_a_class_of_the_scripts_own_does_not_hide_the_trainer(read: Read) -> None:
    text = (
        '@dataclass\nclass ScriptArguments:\n    data: str = "x"\n\n'
        'ORPOTrainer(model="org/M", args=ORPOConfig(max_length=9))\n'
    )
    found = values(read(text, "train.py").launches[0])
    assert (found["data"], found["Trainer.model"], found["max_length"]) == ("x", "org/M", "9")


def test_a_name_has_the_value_of_its_own_function_and_a_parameter_none(read: Read) -> None:
    call = "    GRPOTrainer(model=name, args=GRPOConfig(a=1))\n"
    own, handed = "def f(name):\n    pass\ndef g():\n    name = 'a'\n", "name = 'a'\ndef g(name):\n"
    assert values(read(own + call, "train.py").launches[0])["Trainer.model"] == "a"
    assert "Trainer.model" not in values(read(handed + call, "train.py").launches[0])


def test_an_argument_is_changed_and_added_where_its_call_stands(edited: Edited) -> None:
    text = 'GRPOTrainer(model="org/M", args=GRPOConfig(a=1), peft_config=LoraConfig(r=16, lora_alpha=3, bias="none"))\n'
    assert "LoraConfig(r=8," in edited(text, EditRequest("LoraConfig.r", "8"), name="t.py")
    assert 'bias="none", lora_dropout=0.1)' in edited(text, EditRequest("LoraConfig.lora_dropout", "0.1"), name="t.py")
    assert "GRPOConfig(a=1, b=2)" in edited(text, EditRequest("b", "2"), name="t.py")


def test_a_call_that_is_not_there_gets_no_argument(edited: Edited) -> None:
    with pytest.raises(EditRefused):
        edited("GRPOTrainer(args=GRPOConfig(a=1))\n", EditRequest("LoraConfig.r", "8"), name="t.py")


def test_keywords_handed_over_in_a_dictionary_are_read_and_changed_there(read: Read, edited: Edited) -> None:
    text = "common = dict(a=8)\nc = GRPOConfig(out='x', **common, **{'b': 1})\nGRPOTrainer(model='m', args=c)\n"
    found = values(read(text, "t.py").launches[0])
    assert (found["out"], found["a"], found["b"]) == ("x", "8", "1")
    assert "dict(a=2)" in edited(text, EditRequest("a", "2"), name="t.py")
    assert "**{'b': 1}, n=2)" in edited(text, EditRequest("n", "2"), name="t.py")


@pytest.mark.parametrize("given", ["common = load()", "common = dict(a=8)\ncommon.update(n=4)"])
def test_a_key_that_a_dictionary_may_hold_already_wins_over_it(edited: Edited, given: str) -> None:
    text = given + "\nc = GRPOConfig(out='x', **common)\nGRPOTrainer(model='m', args=c)\n"
    changed = edited(text, EditRequest("n", "2"), name="t.py")
    assert changed == text.replace("**common", '**{**common, "n": 2}')
    assert edited(changed, EditRequest("n", "3"), name="t.py") == changed.replace("2}", "3}")
    with pytest.raises(EditRefused, match=r"\*\*common"):  # every round has its own
        edited("for common in load():\n    c = GRPOConfig(out='x', **common)\n", EditRequest("n", "2"), name="t.py")


def test_a_piece_cut_out_of_a_function_is_read_and_edited_where_it_stands(read: Read, edited: Edited) -> None:
    text = "    model = 'org/M'\n\n    c = DPOConfig(a=1)\n    DPOTrainer(model=model, args=c)\n"
    (launch,) = read(text, "t.py").launches
    assert values(launch)["a"] == "1"
    assert launch.effective()["a"].span.line == 3
    assert edited(text, EditRequest("a", "2"), name="t.py") == text.replace("a=1", "a=2")


def test_an_entry_of_a_dictionary_that_a_config_is_handed_is_added_there(edited: Edited) -> None:
    @each(
        ("given", "wanted"),
        [
            ("a=1", 'a=1, model_init_kwargs={"dtype": "bfloat16"})'),
            ("model_init_kwargs={'k': 1}", """model_init_kwargs={'k': 1, "dtype": "bfloat16"})"""),
            ("model_init_kwargs={}, a=1", 'model_init_kwargs={"dtype": "bfloat16"}, a=1)'),
            ("model_init_kwargs=dict(k=1), a=1", 'model_init_kwargs=dict(k=1, dtype="bfloat16"), a=1)'),
            ("model_init_kwargs=kwargs, a=1", None),
            ("model_init_kwargs={**kwargs, 'k': 1}", None),
            ("a=1, **kwargs", None),
        ],
    )
    def checked(given: str, wanted: str | None) -> None:
        text = f"SFTTrainer(model='m', args=SFTConfig({given}))\n"
        if wanted is not None:
            assert wanted in edited(text, EditRequest("model_init_kwargs.dtype", "bfloat16"), name="t.py")
            return
        with pytest.raises(EditRefused, match="already"):
            edited(text, EditRequest("model_init_kwargs.dtype", "bfloat16"), name="t.py")

    checked()
