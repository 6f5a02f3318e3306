"""Keeps secrets out of what is shown: tokens, keys and passwords that stand in logs, scripts and command lines.

Whatever leaves the program for a screen, a report, JSON, a record or a ticket goes through `redact`. A script that is
written keeps its secrets; so does everything after `show_secrets`, which the user has to ask for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from advisor.hostile import clean_line

HIDDEN = "***"
_COMMAND_LIMIT = 200
_BARE_KEY = re.compile(r"(?<![\w/])[0-9a-f]{40}(?![\w/])")
"""Of Weights & Biases: nothing tells it from a commit but that it stands alone."""
_NAME = 64
"""Characters before a word like "token" that may belong to the same name."""
_OWN_NAME = re.compile(r"[\w.+-]{0,64}\Z")
_SIGN_AND_VALUE = re.compile(
    r"""(?x)
    (?P<sign> (?:\\{0,4}["'])? \]? [ \t]{0,8} [=:] [ \t]{0,8} (?:\\{0,4}["'])?
            | (?:\\{0,4}["'])? ,? [ \t]{1,8} (?:\\{0,4}["'])? )
    (?P<value> [^\s"'`,;&|<>(){}\[\]\\]+ )
    """
)
_NAMES_ANOTHER = re.compile(r"\\{0,4}[\"'][ \t]{0,8}:")
"""Behind what is itself the name of a value: {"key": "--hub_token", "value": …}."""
_SHAPES = re.compile(
    r"""(?x) (?<![A-Za-z0-9]) (?:
      hf_[A-Za-z0-9]{12,} | api_org_[A-Za-z0-9]{16,}                            # Hugging Face
    | wandb_v\d_[\w-]{16,} | r8_[A-Za-z0-9]{16,} | nvapi-[\w-]{16,}             # Weights & Biases, Replicate, NVIDIA
    | sk-[\w-]{12,} | gsk_[A-Za-z0-9]{16,} | AIza[\w-]{30,} | ya29\.[\w-]{16,}  # OpenAI and alike, Groq, Google
    | (?:AKIA|ASIA)[A-Z0-9]{16}\b | LTAI[A-Za-z0-9]{12,} | AKID[A-Za-z0-9]{13,} # Amazon, Alibaba, Tencent
    | gh[opusr]_[A-Za-z0-9]{16,} | github_pat_\w{16,} | glpat-[\w-]{16,}        # GitHub, GitLab
    | xox[abeoprs]-[\w-]{10,} | pypi-[\w-]{16,} | npm_[A-Za-z0-9]{16,} | dop_v1_[0-9a-f]{16,} | hvs\.[\w-]{16,}
    | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )                                    # signed web tokens
    """
)
_SHAPE_BEGINS = (
    *("hf_", "api_org_", "wandb_v", "r8_", "nvapi-", "sk-", "gsk_", "AIza", "ya29.", "AKIA", "ASIA", "LTAI", "AKID"),
    *("gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "pypi-", "npm_", "dop_v1_", "hvs."),
    *("eyJ"),
)
_IN_URL = re.compile(r"://[^\s/@:\"'\\]{0,256}:([^\s/@\"'\\]{1,512})@")
_AFTER = re.compile(r"[ ]{1,4}(?:--[\w-]{1,30}[ ]{1,4}){0,4}(?!-)([\w.~+/=-]{16,})")
_PRIVATE = re.compile(r"(?:(?!-----)[\s\S]){1,8000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?")
_WORDS = ("token", "secret", "password", "passwd", "passphrase", "apikey", "key", "credential", "credentials")
_URL_WORDS = ("signature", "sig")
_HEADS = ("bearer", "basic", "wandb login")
_OWNERS = frozenset(
    (
        *("access", "account", "api", "app", "auth", "aws", "azure", "bearer", "bot", "client", "cr", "dashscope"),
        *("deploy", "encryption", "gh", "github", "gitlab", "google", "hf", "hub", "huggingface", "id", "jwt"),
        *("license", "login", "ms", "modelscope", "ngrok", "openai", "personal", "private", "refresh", "registry"),
        *("secret", "security", "service", "session", "shared", "signing", "slack", "ssh", "storage", "swanlab"),
        *("user", "vault", "wandb"),
    )
)
"""What stands before "token" or "key" in the name of a secret; "pad_token" and "prompt_key" are none."""
_NO_OWNERS = frozenset(
    (
        *("PAD", "EOS", "BOS", "UNK", "MASK", "SEP", "CLS", "IMAGE", "VIDEO", "AUDIO", "STOP", "THINK", "START"),
        *("END", "MAX"),
    )
)
_NO_VALUES = frozenset(("true", "false", "none", "null", "auto", "on", "off", "yes", "no", "str", "optional"))

_hiding = True


def show_secrets(shown: bool = True) -> None:
    """From now on leave secrets where they stand, because the user asked for it; False: hide them again."""
    global _hiding
    _hiding = not shown


def is_hiding() -> bool:
    """Whether secrets are hidden; not so once the user has asked for them."""
    return _hiding


def redact(text: str) -> str:
    """`text` with every secret replaced by "***". Linear in its length; text without one comes back as it is."""
    if not _hiding:
        return text
    parts: list[str] = []
    done = 0
    search, literals = _search()
    for number, start, end in search.find_matches_as_indexes(text, overlapping=True):
        place = _secret(text, literals[number], start, end) if end > done else None
        if place is not None and place[0] >= done:
            parts += (text[done : place[0]], HIDDEN)
            done = place[1]
    return "".join([*parts, text[done:]]) if parts else text


def readable(command: str) -> str:
    """A command line fit to show: one clean line, secrets out, short."""
    return clean_line(_BARE_KEY.sub(HIDDEN, redact(clean_line(command))), _COMMAND_LIMIT)


def redact_value(name: str, value: str) -> str:
    """The value of a setting or a variable, hidden where its name or its shape says that it is a secret."""
    if _hiding and _is_secret_name(name.lstrip("-")) and _is_secret_value(value, is_prose=False):
        return HIDDEN
    return redact(value)


@lru_cache(maxsize=1)
def _search() -> tuple[Any, tuple[str, ...]]:
    """The search for what a secret may begin with or follow, and those literals by number."""
    words = [f(word) for word in (*_WORDS, *_URL_WORDS, *_HEADS) for f in (str, str.upper, str.capitalize)]
    literals = (*dict.fromkeys((*words, "API-KEY", "api-key", *_SHAPE_BEGINS, "://", "PRIVATE KEY-----")),)
    try:
        import ahocorasick_rs
    except ImportError:  # on another node, to which only our own texts were sent
        return _Plain(literals), literals
    return ahocorasick_rs.AhoCorasick(literals, matchkind=ahocorasick_rs.MatchKind.Standard), literals


class _Plain:
    """The same search in Python: for the few short texts of a node."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._number = {literal: number for number, literal in enumerate(literals)}
        longest_first = sorted(literals, key=len, reverse=True)
        self._regex = re.compile("(?=(" + "|".join(map(re.escape, longest_first)) + "))")

    def find_matches_as_indexes(self, text: str, overlapping: bool) -> list[tuple[int, int, int]]:
        """(number, begin, end) of the longest literal at each place."""
        return [(self._number[m[1]], m.start(), m.end(1)) for m in self._regex.finditer(text)]


def _secret(text: str, literal: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the secret stands that a literal at text[start:end] gives away."""
    if literal == "://":
        found = _IN_URL.match(text, start)
        return found.span(1) if found else None
    if literal == "PRIVATE KEY-----":
        found = _PRIVATE.match(text, end)
        return found.span() if found else None
    if literal in _SHAPE_BEGINS:
        found = _SHAPES.match(text, start)
        return found.span() if found else None
    if literal.lower() in _HEADS:
        found = _AFTER.match(text, end)
        return found.span(1) if found else None
    return _assigned(text, literal, start, end)


def _assigned(text: str, word: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of a name that ends in `word`: after "=", ":", or a space where the name is an option."""
    found = _SIGN_AND_VALUE.match(text, end)
    if found is None or _NAMES_ANOTHER.match(text, found.end()):
        return None
    own = _OWN_NAME.search(text, max(start - _NAME, 0), start)
    name = (own.group() if own else "") + word
    sign, value = found["sign"], found["value"]
    if "=" not in sign and ":" not in sign and not name.startswith("-"):
        return None
    if word.lower() in _URL_WORDS and (sign != "=" or text[start - 1 : start] not in ("?", "&", "-")):
        return None
    is_prose = sign.strip(" \t") == ":" and name.lower() in ("token", "key")
    return found.span("value") if _is_secret_name(name) and _is_secret_value(value, is_prose) else None


def _is_secret_name(name: str) -> bool:
    last = re.split(r"[.+]", name.strip("+-."))[-1].replace("-", "_")
    owner, _, word = last.rpartition("_")
    word = word.lower()
    if word.endswith(("secret", "password", "passwd", "passphrase", "apikey")) or word in _URL_WORDS:
        return True
    if last.isupper() and word in _WORDS:
        return bool(owner) and not _NO_OWNERS & set(owner.split("_"))
    owners = set(owner.lower().split("_"))
    if not word.endswith(("token", "key", "credential", "credentials")):
        return False
    if word == "token" or word.startswith("credential"):
        return not owner or bool(owners & _OWNERS)
    return bool(owners & _OWNERS)


def _is_secret_value(value: str, is_prose: bool) -> bool:
    if value.startswith(("$", "/", "~", "%", "*")) or value.lower() in _NO_VALUES or not value.strip(".…"):
        return False
    if value.isdecimal():
        return len(value) > 7
    return not is_prose or (len(value) >= 8 and any(character.isdigit() for character in value))
