"""Secrets are hidden wherever they stand, and nothing else is."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.redact import HIDDEN, redact, show_secrets
from tests.loops import each
from tests.trust.secret_forms import FORMS

SECRETS = {
    "an exported token": ("export HF_TOKEN={}", "hf_aBcDeFgHiJkLmNoPqRsTuV"),
    "a quoted key": ('export WANDB_API_KEY="{}"', "0123456789abcdef0123456789abcdef01234567"),
    "a secret access key": ("AWS_SECRET_ACCESS_KEY={} python3 train.py", "wJalrXUtnFEMI/K7MDENG+bPx"),
    "an option": ("python3 -m x --wandb_key {} --lr 1e-6", "0123456789abcdef"),
    "an option with a hyphen": ("swift rlhf --hub-token {}", "abc-def-123"),
    "an option with =": ("x --api-key={}", "k3y"),
    "a hydra override": ("+trainer.wandb.api_key={}", "abcdef0123"),
    "YAML": ("hub_token: {}", "a-b-c-d-1"),
    "JSON": ('{{"hf_token": "{}", "n": 8}}', "abc"),
    "JSON in JSON": ('"{{\\"password\\": \\"{}\\"}}"', "hunter2"),
    "Python": ('os.environ["OPENAI_API_KEY"] = "{}"', "sk-abcdefghijklmnop123"),
    "a password": ("--password {}", "correct-horse"),
    "a password in a log": ("connecting with password: {}", "hunter2"),
    "a URL": ("pip install git+https://user:{}@host.example/x.git", "pa55w0rd"),
    "a bearer": ("Authorization: Bearer {}", "abcdefghijklmnop.123"),
    "wandb login": ("wandb login --relogin {}", "0123456789abcdef0123456789abcdef01234567"),
    "a signed URL": ("https://bucket/x?sig={}&sv=2", "abc%2Fdef"),
    "an Amazon key by its shape": ("found {} in the log", "AKIAIOSFODNN7EXAMPLE"),
    "a GitHub token by its shape": ("remote: {}", "ghp_0123456789abcdefABCDEF0123"),
    "a web token": ("cookie {}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def"),
    "an Alibaba key": ("OSS_ACCESS_KEY_ID={}", "LTAI5tAbCdEfGhIjKl"),
    "docker's environment": ("docker run -e HF_TOKEN={} image", "abc123"),
    "kubernetes": ("  - name: x\n    WANDB_TOKEN: {}", "s3cr3t-1"),
    "camel case": ('{{"apiKey": "{}"}}', "zzz999"),
}
PLAIN = [
    "def test_merge_datasets_uses_hf_concatenation():",
    'setattr(routes, "hf_reachability_memo", hf_quantization_fields)',
    "overrides[authenticated_via_api_key] = lambda: False",
    "HF_TOKEN: # in case you use gated models",
    "# hf_use_auth_token: # boolean",
    '{"key": "--hub_token", "value": "$HF_TOKEN", "resolved": false}',
    '{"signature": "ray-memory-kill", "key": "data.train_batch_size", "value": "8"}',
    "signature=torch-oom sig: 9",
    "data.prompt_key=prompt",
    "data.reward_fn_key=data_source image_key=images",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384",
    "tokenizer.pad_token='<|endoftext|>' eos_token=</s>",
    "PAD_TOKEN=x MAX_TOKEN=4096",
    "--stop-token im_end --special_token a",
    "use_auth_token=True hub_token: null",
    "--hub_token $HF_TOKEN api_key=${WANDB_API_KEY}",
    "KeyError: 'key: foo' and an unexpected token: }",
    "GOOGLE_APPLICATION_CREDENTIALS=/home/u/key.json",
    "at commit 0123456789abcdef0123456789abcdef01234567",
    "step:12 - num_tokens:123456789 - key 4",
    "https://github.com/verl-project/verl/issues/1964",
    "please set HF_TOKEN to log in",
    "the secret of success is patience",
    "max_tokens=4096 token_level_scores: 0.5",
    "jq 'select(.key == \"train/loss\") | .value | keys'",
    "client = OpenAI(base_url=base_url, api_key=api_key); sessions[session_key] = session",
    'assert args.wandb_api_key == "key123"',
    '"E2B_API_KEY", "ADAPTER_PUBLIC_HOST"',
    "distillation.teacher_models.gsm8k.key=openai/gsm8k",
    '[ -n "${WANDB_API_KEY:-}" ] || HF_TOKEN=${HF_TOKEN:-}; : "${API_KEY:?set it}"',
    "id-token: write",
    "policy_api_key: dummy",
    "forward_pass=3 PWD=/root/x OLDPWD=/tmp",
    "git@github.com:verl-project/verl.git https://user@host/x",
    "wandb: Syncing run at commit 0123456789abcdef0123456789abcdef01234567",
]


@each("name", SECRETS)
def test_a_secret_is_hidden_and_the_rest_stays(name):
    text, secret = SECRETS[name]
    assert redact(text.format(secret)) == text.format(HIDDEN)


@each(("text", "secret"), FORMS)
def test_no_part_of_a_secret_is_told_in_any_form(text, secret):
    told = redact(text.format(secret))
    assert [part for part in re.split(r"[\s,/]|\\\\n", secret) if len(part) >= 4 and part in told] == []


@each("text", PLAIN)
def test_what_only_sounds_like_a_secret_stays(text):
    assert redact(text) == text


def test_the_lines_of_a_private_key_are_hidden():
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nafter"
    assert redact(key) == f"-----BEGIN OPENSSH PRIVATE KEY-----{HIDDEN}\nafter"


def test_secrets_are_shown_once_that_was_asked_for():
    show_secrets()
    try:
        assert redact("HF_TOKEN=abc") == "HF_TOKEN=abc"
    finally:
        show_secrets(False)
    assert redact("HF_TOKEN=abc") == f"HF_TOKEN={HIDDEN}"


@given(st.text(), st.sampled_from(sorted(SECRETS)), st.text())
def test_hiding_twice_changes_nothing_more(before, name, after):
    text, secret = SECRETS[name]
    once = redact(f"{before}\n{text.format(secret)}\n{after}")
    assert redact(once) == once


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_only_ever_shortened_to_stars(text):
    kept = redact(text).split(HIDDEN)
    at = 0
    for part in kept:
        at = text.index(part, at) + len(part)


@each(
    "piece", ["token", "key ", 'token="', "://", "://a:", "eyJ", "hf_", "basic ", "\\", "-----BEGIN PRIVATE KEY-----"]
)
def test_a_text_made_to_mislead_takes_twice_as_long_where_it_is_twice_as_long(piece):
    def spent(characters: int) -> float:
        begun = time.process_time()
        redact(piece * (characters // len(piece)))
        return time.process_time() - begun

    assert min(spent(30_000), spent(30_000)) < 3 * spent(15_000) + 0.1


@pytest.mark.parametrize("name", SECRETS)
def test_a_node_without_the_quick_search_hides_the_same(name, monkeypatch):
    import advisor.redact as module

    text, secret = SECRETS[name]
    monkeypatch.setitem(__import__("sys").modules, "ahocorasick_rs", None)
    module._search.cache_clear()
    try:
        assert redact(text.format(secret)) == text.format(HIDDEN)
    finally:
        module._search.cache_clear()
