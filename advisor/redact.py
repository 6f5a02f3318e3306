"""Keeps secrets out of what is shown: tokens, keys and passwords that stand in logs, scripts and command lines.

Whatever leaves the program for a screen, a report, JSON, a record or a ticket goes through `redact`. A script that is
written keeps its secrets; so does everything after `show_secrets`, which the user has to ask for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from advisor.regex import regex

HIDDEN = "***"
_BARE_KEY = regex(r"(?<![\w/])[0-9a-f]{40}(?![\w/])")
"""Of Weights & Biases: nothing tells it from a commit but that it stands alone."""
_NAME = 64
"""Characters before a word like "token" that may belong to the same name."""
_TAGGED = regex(r">([^<>\s]{3,200})</")
"""The value of an XML element."""
_OWN_NAME = regex(r"[\w.+-]{0,64}\Z")
_QUOTE = r"""\\{0,4}["']"""
_PLAIN = r"""[^\s"'`,;&|<>(){}\[\]\\]"""
_VALUE = rf"""
    (?: (?:[bfru]{{1,2}} | \$)?
        (?P<quote> {_QUOTE}) (?P<quoted> (?: (?!(?P=quote)) (?:\\. | [^\n]) ){{1,2000}} ) (?P=quote)
      | (?P<list> \[ [ \t]{{0,8}} [^]\n]{{1,2000}} )
      | (?:{_QUOTE})? (?P<bare> (?!=|\#\s) {_PLAIN}+ (?: \\\n[ \t]{{0,8}} {_PLAIN}+ ){{0,8}} ) )
"""
_SIGN = rf"""(?x)
    (?P<sign> (?:{_QUOTE})? \]? [ \t]{{0,8}}
      (?: : [ \t]{{0,8}} [A-Za-z]\w{{0,30}} [ \t]{{0,8}} = | => | := | =(?!=) | : ) [ \t]{{0,8}}
    | (?:{_QUOTE})? ,? \s{{1,40}} (?:{_QUOTE})? [Vv]alue (?:{_QUOTE})? [ ]? : [ \t]{{0,8}}  # name: and value:
    | {_QUOTE} (?P<argument> ,) [ \t]{{0,8}} (?={_QUOTE})                      # an argument after the name
    | [ \t]{{0,40}} [|\u2502\u2503] [ \t]{{0,8}} | \t[ \t]{{0,8}}                 # the next cell of a table
    | (?:{_QUOTE})? [ \t]{{1,8}} )
"""
_SIGN_AND_VALUE = regex(_SIGN + _VALUE)
_ITEM = regex(r"""(?x) : [ \t]{0,8} \n [ \t]{0,16} - [ \t]{1,8} (?P<bare> [^\s"'#]{1,500} )""")
"""The first of a YAML list."""
_BLOCK = regex(
    r"""(?x) (?:\\{0,4}["'])? [ ]{0,4} : [ \t]{0,8} [|>][+-]?\d? [ \t]{0,8} \n (?P<indent> [ \t]{1,40} )
    (?P<bare> [^\s"'#]{1,2000} (?: \n (?P=indent) [\w+/=-]{8,2000} (?=\s|\Z) ){0,60} )"""
)
"""A text below the name, as YAML writes those of several lines."""
_DEFAULT = regex(
    rf"""(?x) (?P<sign> (?: {_QUOTE} , | [ \t]{{0,4}} : [^=\n]{{1,60}} = [ \t]{{0,4}} [\w.]{{1,40}} \( ) [^\n]{{0,160}}?
    \b default [ ]{{0,2}} = [ ]{{0,2}} ) [bfru]? (?P<quote> ["'] ) (?P<quoted> [^"'\n]{{1,2000}} ) (?P=quote)"""
)
"""What an option or a field is where nothing is given."""
_NAMES_ANOTHER = regex(rf"{_QUOTE}[ \t]{{0,8}}:")
"""Behind what is itself the name of a value: {{"key": "--hub_token", "value": …}}."""
_DECLARES = regex(
    r"\b(?:(?:setenv|ENV|ARG|set -\w{1,3})[ \t]{1,4}[A-Z]\w{0,80}|configure set[ \t]{1,4}\w{1,80}"
    r"|machine .{1,80} password|requirepass)\Z"
)
"""Ends in a name whose value follows after a blank."""
_NETRC = regex(r"\n[ \t]{0,16}login[ \t]{1,16}\S{1,80}[ \t]{0,16}\n[ \t]{0,16}password\Z")
_PUTTY = regex(r" \d{1,4}\n((?:[\w+/=]{4,200}(?:\n|\Z)){1,200})")
_SHAPES = regex(
    r"""(?x) (?<![A-Za-z0-9]) (?:
      hf_(?![a-z]{1,19}(?:\b|_))[A-Za-z0-9]{12,} | api_org_[A-Za-z0-9]{16,}                      # Hugging Face
    | wandb_v\d_[\w-]{16,} | r8_[A-Za-z0-9]{16,} | nvapi-[\w-]{16,}             # Weights & Biases, Replicate, NVIDIA
    | sk-[\w-]{12,} | gsk_[A-Za-z0-9]{16,} | AIza[\w-]{30,} | ya29\.[\w-]{16,}  # OpenAI and alike, Groq, Google
    | xai-[A-Za-z0-9]{20,} | pplx-[A-Za-z0-9]{20,} | tvly-[\w-]{20,} | jina_[A-Za-z0-9]{20,} | fw_[A-Za-z0-9]{20,}
    | (?:AKIA|ASIA)[A-Z0-9]{16}\b | LTAI[A-Za-z0-9]{12,} | AKID[A-Za-z0-9]{13,} # Amazon, Alibaba, Tencent
    | gh[opusr]_[A-Za-z0-9]{16,} | github_pat_\w{16,} | gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent)-[\w-]{16,}
    | xox[abeoprs]-[\w-]{10,} | xapp-[\w-]{10,} | pypi-[\w-]{16,} | npm_[A-Za-z0-9]{16,} | dop_v1_[0-9a-f]{16,}
    | hvs\.[\w-]{16,} | dapi[0-9a-f]{32} | dckr_pat_[\w-]{20,} | GOCSPX-[\w-]{16,} | glsa_\w{20,} | phc_\w{20,}
    | [rs]k_live_[A-Za-z0-9]{16,} | whsec_[A-Za-z0-9+/]{16,} | SG\.[\w-]{16,}\.[\w-]{16,} | figd_[\w-]{16,}
    | lin_api_[A-Za-z0-9]{16,} | ntn_[A-Za-z0-9]{16,} | shpat_[0-9a-f]{32} | sq0[a-z]{3}-[\w-]{20,} | ATATT3x[\w-]{16,}
    | AGE-SECRET-KEY-[A-Z0-9]{40,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )     # signed web tokens
    """
)
_SHAPE_BEGINS = (
    *("hf_", "api_org_", "wandb_v", "r8_", "nvapi-", "sk-", "gsk_", "AIza", "ya29.", "AKIA", "ASIA", "LTAI", "AKID"),
    *("gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"),
    *("glft-", "glimt-", "glagent-", "xox", "xapp-", "pypi-", "npm_", "dop_v1_", "hvs.", "dapi", "dckr_pat_"),
    *("GOCSPX-", "glsa_", "phc_", "sk_live_", "rk_live_", "whsec_", "SG.", "figd_", "lin_api_", "ntn_", "shpat_"),
    *("sq0", "ATATT3x"),
    *("xai-", "pplx-", "tvly-", "jina_", "fw_", "AGE-SECRET-KEY-", "eyJ"),
)
_BOT = regex(r"(?<=\d)\d{0,11}:AA[\w-]{33}(?![\w-])")
"""Of a Telegram bot, from its second digit on."""
_IN_URL = regex(r"""://[^\s/@:"'\\]{0,256}:([^\s/"'\\]{1,512})@""")
_ALONE_IN_URL = regex(r"""://([^\s/@:"'\\]{12,512})@""")
_WEBHOOK = regex(
    r"""(?x) ://(?: hooks\.slack\.com/(?:services|workflows|triggers)/
    | (?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/ | qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=
    | open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/ | [\w.-]{1,80}\.webhook\.office\.com/webhookb2/ )
    ([\w/@.-]{12,300})
    """
)
_AFTER = regex(r"[ ]{1,4}(?:-{1,2}[\w-]{1,30}(?:=\S{1,80})?[ ]{1,4}){0,4}(?!-)([\w.~+/=-]{16,})")
_AUTHORIZATION = regex(
    rf"""(?x) (?:{_QUOTE})? [ ]? [:=] [ ]{{0,4}} (?:{_QUOTE})?
    (?: [A-Za-z]{{1,20}} [ ]{{1,4}} (?=\S{{4}}) | (?=\S{{16}}) ) ([^\s"'\\<>{{}}$]+)"""
)
_COOKIE = regex(r"""(?:\\{0,4}["'])?:[ ]{0,4}(?:\\{0,4}["'])?\w{1,40}=([^\s;"']{8,})""")
_PASSWORD_OPTIONS = {
    "sshpass": regex(r"[ ]{1,4}-p[ ]{0,4}(?:(['\"])(.{1,200}?)\1|([^\s'\"$]{3,}))"),
    "docker login": regex(r".{0,200}?[ ]-p[ =]{1,4}(['\"]?)()([^\s'\"$]{3,})"),
    "mysql": regex(r"(?:dump|admin|import|sh)?[ ].{0,120}?-p(['\"]?)()([^\s'\"$-][^\s'\"$]{2,})"),
    "curl": regex(r".{0,400}?(?:[ ]-\w{0,6}u|--user|--proxy-user)[ =]{0,2}(['\"]?)()[^\s:'\"]{0,80}:([^\s'\"$]{3,})"),
    "curl ": regex(r".{0,400}?(?<![\w-])(?:-b|--cookie)[ =]{0,2}(['\"]?)()[\w.-]{1,40}=([^\s;'\"$]{8,})"),
    "swanlab login": regex(r".{0,80}?[ ]-k[ =]{1,4}(['\"]?)()([^\s'\"$]{8,})"),
    "redis-cli": regex(r"[ ].{0,120}?-a[ ]{1,4}(['\"]?)()([^\s'\"$-][^\s'\"$]{2,})"),
    "mongo": regex(r"(?:sh|dump|restore)?[ ].{0,120}?-p[ ]{0,4}(['\"]?)()([^\s'\"$-][^\s'\"$]{2,})"),
    "zip ": regex(r".{0,80}?-P[ ]{0,4}(['\"]?)()([^\s'\"$-][^\s'\"$]{2,})"),
    "7z ": regex(r".{0,80}?[ ]-p(['\"]?)()([^\s'\"$]{3,})"),
    "openssl": regex(r"[ ].{0,120}?(?:-k[ ]{1,4}|pass:)(['\"]?)()([^\s'\"$-][^\s'\"$]{2,})"),
    "ossutil": regex(r".{0,120}?[ ]-k[ ]{1,4}(['\"]?)()([^\s'\"$-][^\s'\"$]{7,})"),
    "smbclient": regex(r".{0,80}?[ ]-U[ ]{0,4}(['\"]?)()[^\s%'\"]{1,80}%([^\s'\"$]{3,})"),
    "authtoken": regex(r"[ ]{1,4}(['\"]?)()((?=\D{0,80}\d)[\w-]{20,})"),
    "login(": regex(r"[ ]{0,4}(['\"])()((?=\D{0,80}\d)[\w.-]{16,})(?=\1)"),
    "echo ": regex(r"(['\"]?)()([^\s'\"$|;&]{3,})\1[ ]{1,4}\|[ ]{1,4}(?:sudo[ ]{1,4}-S|[\w -]{1,60}--password-stdin)"),
    "sudo -S <<<": regex(r"[ ]{0,4}(['\"]?)()([^\s'\"$]{3,})"),
}
"""Program → its option that takes a password, as the last group."""
_PRIVATE = regex(
    r"(?:[ ]BLOCK)?-----((?:(?!-----)[\s\S]){1,8000}(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?)"
)
_PUTTYS = "Private-Lines:"
_TRACKERS = ("wandb", "WANDB", "swanlab", "SWANLAB")
_OF_TRACKER = regex(r"""(?<!/)[\w-]{0,24}[^\w\n/]{1,6}(?:\w{1,12}[^\w\n/]{1,4}){0,3}([0-9a-f]{40})(?![\w/])""")
"""A key near its tracker's name: 40 hexadecimal digits."""
_WORDS = ("token", "secret", "password", "passwd", "passphrase", "apikey", "key", "credential", "credentials")
_LAST_WORDS = ("pass", "pwd", "auth", "requirepass", "keyid", "pat")
"""Names of a secret only behind an owner."""
_URL_WORDS = ("signature", "sig")
_HEADS = ("bearer", "basic", "wandb login", "api key", "with token")
_HEADERS = ("authorization", "cookie")
_OWNERS = frozenset(
    (
        *("access", "account", "api", "app", "auth", "aws", "azure", "bearer", "bot", "client", "cr", "dashscope"),
        *("deploy", "encryption", "gh", "github", "gitlab", "google", "hf", "hub", "huggingface", "id", "jwt"),
        *("license", "login", "ms", "modelscope", "ngrok", "openai", "personal", "private", "refresh", "registry"),
        *("secret", "security", "service", "session", "shared", "signing", "slack", "ssh", "storage", "swanlab"),
        *("user", "vault", "wandb", "webhook"),
    )
)
"""What stands before "token" or "key" in the name of a secret; "pad_token" and "prompt_key" are none."""
_OF_MANY = frozenset(
    ("access", "api", "auth", "aws", "bot", "github", "hf", "openai", "private", "refresh", "secret", "wandb")
)
"""The same before "tokens" and "keys", which are mostly counted."""
_DOTTED = frozenset(("access", "account", "private", "secret"))
"""The same before a dot: `fs.s3a.secret.key`."""
_OF_PASSWORDS = frozenset(
    (
        *("admin", "db", "ftp", "http", "mail", "mongo", "mysql", "pg", "postgres", "proxy", "redis", "root"),
        *("smtp", "sql", "ssh"),
    )
)
_NO_OWNERS = frozenset(
    (
        *("PAD", "EOS", "BOS", "UNK", "MASK", "SEP", "CLS", "IMAGE", "VIDEO", "AUDIO", "STOP", "THINK", "START"),
        *("END", "MAX"),
    )
)
_NO_VALUES = frozenset(("true", "false", "none", "null", "auto", "on", "off", "yes", "no", "str", "optional", "lambda"))
_PLACEHOLDER = regex(
    r"""(?x) \\{0,4} \$ (?: \{?\w+\}?.{0,3} | [({].* ) | [{<].* | \*+ | %\w+% | %[sdr].{0,2}
    | (?i:your)\b.* | x{3,} | .*\.\.\. """
)
"""What stands for a value that is somewhere else."""
_CALLED = regex(r"\([\"']\Z")
_SIGNS = ("=", ":", "|", "\u2502", "\u2503")
_MAY_FOLLOW = (*_SIGNS, " ", "\t", "\n", '"', "'", "\\", "]", ",", ">")
"""What stands right behind the name of a value."""
_REST = regex(r"[^\s\"']*")
_PATH = regex(r"[~.]{0,2}/(?![\w+/=%*]{24,}\Z).*|[~.]{1,2}/.*")
_WORD = regex(r"[a-z_.-]+|[A-Z_]+|[A-Za-z]{1,19}")
"""A variable or a stand-in, not a token: no digit, one case."""
_KEY = regex(r"[A-Za-z0-9+=-]{20,}")
_NAMED_SO = regex(r"(?i:dummy|fake|empty|example|placeholder|your|changeme|wrong|unknown|key|token|secret)")
_IN_CODE = regex(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+")

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


def redact_command(command: str) -> str:
    """`redact` for a command line, where a key of Weights & Biases stands alone."""
    return _BARE_KEY.sub(HIDDEN, redact(command)) if _hiding else command


def redact_words(words: Sequence[str]) -> list[str]:
    """The words of a command, each hidden as in the whole of it: `--hub_token` says what the next word is."""
    try:
        told = shlex.split(redact(shlex.join(words)))
    except ValueError:  # a secret took a quote with it
        told = []
    return [redact_command(word) for word in (told if len(told) == len(words) else words)]


def redact_value(name: str, value: str) -> str:
    """The value of a setting or a variable, hidden where its name or its shape says that it is a secret."""
    if _hiding and _is_secret_name(name.lstrip("-")) and _is_secret_value(value):
        return HIDDEN
    head = f"{name}="
    told = redact(head + value)
    return told.removeprefix(head) if told.startswith(head) else HIDDEN


@lru_cache(maxsize=1)
def _search() -> tuple[Any, tuple[str, ...]]:
    """The search for what a secret may begin with or follow, and those literals by number."""
    words = (*_WORDS, *_LAST_WORDS, *_URL_WORDS, *_HEADS, *_HEADERS, "keyId")
    cased = [f(word) for word in words for f in (str, str.upper, str.capitalize)]
    more = ("API-KEY", "api-key", "API key", "KeyId", ":AA", *_SHAPE_BEGINS, *_TRACKERS, *_PASSWORD_OPTIONS)
    literals = (*dict.fromkeys((*cased, *more, "://", "PRIVATE KEY", _PUTTYS)),)
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
    lower = literal.lower()
    if literal == "://":
        return _in_url(text, start)
    if literal == _PUTTYS:
        return _group(_PUTTY.match(text, end))
    if literal == "PRIVATE KEY":
        return _group(_PRIVATE.match(text, end))
    if literal == ":AA":
        digits = re.search(r"\d{6,12}\Z", text[max(start - 12, 0) : start])
        found = _BOT.match(text, start) if digits else None
        return (start - len(digits.group()), found.end()) if found and digits else None
    if literal in _SHAPE_BEGINS:
        found = _SHAPES.match(text, start)
        return found.span() if found else None
    if literal in _TRACKERS or literal in _PASSWORD_OPTIONS:
        found = _PASSWORD_OPTIONS.get(literal, _OF_TRACKER).match(text, end)
        return found.span(max(number for number in range(1, found.re.groups + 1) if found[number])) if found else None
    if lower in _HEADERS:
        found = (_AUTHORIZATION if lower == "authorization" else _COOKIE).match(text, end)
        return None if found is None or _IN_CODE.match(found[1]) else found.span(1)
    if lower in _HEADS:
        found = _AFTER.match(text, end)
        return found.span(1) if found and any(map(str.isdigit, found[1])) else None
    return _assigned(text, literal, start, end)


def _group(found: re.Match[str] | None) -> tuple[int, int] | None:
    return found.span(1) if found else None


def _in_url(text: str, start: int) -> tuple[int, int] | None:
    """A webhook's path, a password before a host, or a token that stands there alone."""
    for pattern in (_WEBHOOK, _IN_URL, _ALONE_IN_URL):
        found = pattern.match(text, start)
        if found and not _PLACEHOLDER.fullmatch(found[1]):
            return found.span(1)
    return None


def _assigned(text: str, word: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of a name that ends in `word`: after a sign, in the next cell, or after a blank of an option."""
    many = text[end : end + 1] in ("s", "S") and word.lower() != "pass"
    end += many
    if text[end : end + 1] not in _MAY_FOLLOW:
        return None
    own = _OWN_NAME.search(text, max(start - _NAME, 0), start)
    name = (own.group() if own else "") + word
    if not _is_secret_name(name, many) or (text[end] in " \n\"'" and not _has_sign(text, name, end)):
        return None
    if text[end] == ">":
        tagged = _TAGGED.match(text, end)
        return tagged.span(1) if tagged and _holds_secret(name, "=", tagged[1], is_bare=True) else None
    found = (_ITEM.match(text, end) if many else None) or _BLOCK.match(text, end) or _DEFAULT.match(text, end)
    found = found or _SIGN_AND_VALUE.match(text, end)
    if found is None or _NAMES_ANOTHER.match(text, found.end()):
        return None
    groups = found.groupdict()
    kind = next(each for each in ("quoted", "list", "bare") if groups.get(each) is not None)
    sign, value, (begin, until) = groups.get("sign") or ":", groups[kind] or "", found.span(kind)
    head = start - len(name) + len(word)
    if (
        (kind == "list" and not (many and re.search(r"[A-Za-z]", value)))  # of numbers are those of a tokenizer
        or (groups.get("argument") and not _takes_next(text, name, value, head))
        or (word.lower() in _URL_WORDS and (sign != "=" or text[start - 1 : start] not in ("?", "&", "-")))
        or (kind == "bare" and (text[until : until + 1] in ("(", "[", "{") or _IN_CODE.fullmatch(value)))
    ):
        return None
    if kind == "bare" and sign == ":" and value.startswith(("-", "?")):  # ${NAME:-default}, ${NAME:?message}
        if value[0] == "?":
            return None
        begin, value = begin + 1, value[1:]
    if kind == "bare" and many:
        until = next(iter(_REST.finditer(text, until))).end()
    return (begin, until) if _holds_secret(name, sign, value, kind == "bare") else None


def _takes_next(text: str, name: str, value: str, head: int) -> bool:
    """Whether what follows a name behind a comma is its value, not the next of a list of names."""
    is_option = name.startswith("--") and not value.startswith("-")
    return is_option or _CALLED.search(text, max(head - 2, 0), head) is not None


def _has_sign(text: str, name: str, end: int) -> bool:
    """Behind blanks stands more than the next word, or a blank is all that an option or a declaration needs."""
    if name.startswith("-"):
        return True
    ahead = text[end : end + 60].lstrip(" \t\n\"'\\")
    if ahead[:1] in (*_SIGNS, ",", "]") or ahead[:5].lower() == "value":
        return True
    before = text[max(end - 180, 0) : end]
    return bool(_DECLARES.search(before.rpartition("\n")[2]) or _NETRC.search(before))


def _holds_secret(name: str, sign: str, value: str, is_bare: bool) -> bool:
    """What stands behind the name of a secret is one: no stand-in, no variable, no word of prose."""
    last = _snake(name).lower()
    if name.lower().endswith(("password", "passwd", "passphrase", "_pass", "_pwd")):
        return _is_secret_value(value, is_password=True)
    stands_in = is_bare and not (_snake(name).isupper() and value.islower())  # a variable; HF_TOKEN=abc is none
    if _WORD.fullmatch(value) and (stands_in or _NAMED_SO.search(value)):
        return False
    has_digit = any(map(str.isdigit, value))
    if last not in ("token", "key", "secret", "auth"):
        owners = set(last.split("_")[:-1])
        return (has_digit or not owners or bool(owners & _OWNERS)) and _is_secret_value(value)
    if " " in value:
        return False
    named = (name.startswith("-") or "=" in sign) and len(re.findall(r"\w", value)) > 2  # `token = "\n"`
    if last == "key":
        return len(re.findall(r"\d", value)) > 3 and _KEY.fullmatch(value) is not None
    return _is_secret_value(value) and (named or (has_digit and len(value) >= (16 if last == "auth" else 8)))


def _snake(name: str) -> str:
    *_, owner, last = ("", *re.split(r"[.+]", name.strip("+-.").replace("-", "_")))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", f"{owner}_{last}" if owner in _DOTTED else last)


def _is_secret_name(name: str, many: bool = False) -> bool:
    last = _snake(name)
    owner, _, word = last.lower().rpartition("_")
    owners = set(owner.split("_"))
    if many:
        return word in ("token", "key", "secret", "password") and bool(owners & _OF_MANY)
    if word in ("pass", "pwd"):
        return bool(owners & _OF_PASSWORDS) or last == "Pwd"  # of a connection string
    if word == "pat":
        return last.isupper() and bool(owner)
    if word.endswith(("secret", "password", "passwd", "passphrase", "apikey", "sshpass")) or word in _URL_WORDS:
        return True
    if word in ("auth", "requirepass"):
        return word == "requirepass" or last in ("_auth", "auth")
    if last.isupper() and word in _WORDS and owner:
        return not _NO_OWNERS & set(owner.upper().split("_"))
    if last.lower().endswith("key_id"):
        return bool(owners & {"access", "secret"})
    if not word.endswith(("token", "key", "credential", "credentials")):
        return False
    joined = word.removesuffix("token").removesuffix("key") in _OWNERS  # authkey, accesstoken
    return joined or last.lower() in _WORDS if not owner else bool(owners & _OWNERS)


def _is_secret_value(value: str, is_password: bool = False) -> bool:
    if _PLACEHOLDER.fullmatch(value) or _PATH.fullmatch(value) or value.lower().rstrip(":") in _NO_VALUES:
        return False
    return bool(value.strip(".…")) and (is_password or not value.isdecimal() or len(value) > 7)
