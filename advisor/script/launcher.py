"""Finds what a command line runs: the launcher, the training program, and where its arguments begin.

Knows wrappers (`env`, `srun`, `docker run`), launchers and the shapes of program names; knows no framework.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from advisor.bash.state import GivenVariable, LauncherMatch, Wrapped
from advisor.regex import regex

_TORCHRUN_FLAGS = {"--standalone", "--no-python", "--no_python", "--use-env", "--use_env", "--run-path", "--run_path"}
_LAUNCH_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    **dict.fromkeys(("coverage", "cProfile", "pdb", "debugpy", "memray", "scalene", "viztracer"), "script"),
}
"""Modules that run a program: how the program is found behind them."""
_CONSOLE_MODULES = {
    "trl.cli": "trl", "trl.cli.main": "trl", "llamafactory.cli": "llamafactory-cli", "swift.cli.main": "swift",
    "axolotl.cli.main": "axolotl",
}  # fmt: skip
"""Modules that are a console script's: `python -m trl.cli grpo` is `trl grpo`."""
_TRAINS = regex(
    r"train|ppo|grpo|gspo|dpo|kto|orpo|cpo|rloo|gkd|reward|(?<![a-z])rlhf|sft|dapo|distill|finetune|pretrain"
    r"|realhf\.apps|areal|run_agentic"
    r"|(^|[./_])(main(_\w+)?|rl)(\.py)?$|start_\w+|run_\w*(rm|vlm|clm)|^(swift|megatron) pt$"
)
_OTHER_WORK = regex(
    r"convert|merge|preprocess|infer\b|inference|eval|generat|download|check_|json_dump|server|serve_|serve$|unittest|pytest"
    r"|export|data_process|prepare|tokenize|build_|interactive_|upload|plot|compare|^torchvision|setup\.py|http"
    r"|dist_checkpoint|start_retriev|extract|verify|diagnose|to_torch|hf_to|torch_to|from_pretrained|process_|data/"
)


def is_training(program: str) -> bool:
    """Whether a program's name has the shape of a training entry point."""
    return not is_other_work(program) and bool(_TRAINS.search(_near(program)))


def is_other_work(program: str) -> bool:
    """Whether a program's name has the shape of what comes before or after training."""
    last = program.rsplit("/", 1)[-1].replace("trainer", "")
    return _OTHER_WORK.search(_near(program)) is not None and "train" not in last


def _near(program: str) -> str:
    """The name of a program without the folders of a disk, which tell no work."""
    return "/".join(program.split("/")[-2:]) if program.startswith("/") else program


_SERVES = regex(r"(^|[ ./_])(rollout|vllm[-_]serve)(\.py)?$")


def is_engine(program: str) -> bool:
    """Whether a program's name has the shape of a framework's own rollout server."""
    return bool(_SERVES.search(program))


def find_launcher(words: Sequence[str]) -> LauncherMatch | None:
    """What a command line runs, behind any wrappers; None where it runs nothing that we can name."""
    at: int | None = 0
    wrapped = Wrapped()
    for _ in range(12):
        if at is None or at >= len(words):
            return None
        name = base(words[at])
        if not name:  # not known: `$PYTHON -u train.py`, `$WRAPPER python train.py`
            python = _python(words, at) if "".join(words[at + 1 : at + 2]).startswith("-") else None
            if python is not None:
                return replace(python, wrapped=wrapped, trains=_is_training(words, python))
            at += 1
        elif name == "env" or _ENVIRONMENT.match(words[at]):  # a shell runs what `ray job submit --` is given
            start = past_env(words, at + (name == "env"), wrapped)
            _go(words, at, start, wrapped)
            at = start
        elif name == "ray":
            at = past_ray(words, at, wrapped)
        elif name == "uv":
            command = past_uv(words, at)
            _go(words, at, command or at, wrapped)
            at = command
        elif name in _ENVIRONMENTS and "run" not in words[at + 1 :]:
            return None  # `conda shell.bash hook`, `conda activate`
        elif name in _WRAPPERS:
            start = past_wrapper(words, at, wrapped)
            text = shell_text(words, at) if start == len(words) else None
            if text is not None:
                return LauncherMatch("text", "", text[0], cut=text[1], wrapped=wrapped)
            at = start
        else:
            found = _program(words, at)
            behind = _behind_dashes(words, found, at)
            if behind is None:
                return found and replace(found, wrapped=wrapped, trains=_is_training(words, found))
            at = behind
    return None


_ASKS = {"-h", "--help", "--version", "--hydra-help", "--cfg"}
"""Options with which a program prints something of itself and ends: argparse's and Hydra's."""


def only_asks(words: Sequence[str], found: LauncherMatch) -> bool:
    """Whether a program is only asked for its help, its version or its settings."""
    own = words[found.arguments :]
    return any(
        word in _ASKS and (word in ("--help", "--cfg") or "".join(own[at + 1 : at + 2])[:1] in ("", "-"))
        for at, word in enumerate(own)
    )


def _is_training(words: Sequence[str], found: LauncherMatch) -> bool:
    return found.kind == "program" and is_training(found.program) and not only_asks(words, found)


def _behind_dashes(words: Sequence[str], found: LauncherMatch | None, at: int) -> int | None:
    """The command that a program starts which is no training itself: `python submit.py --gpus 8 -- torchrun …`, or the
    first that it is given: `python boot.py train_grpo.py --config …`, `rlaunch --gpu=8 torchrun …`."""
    if found is not None and (found.kind != "program" or is_training(found.program)):
        return None
    start = at + 1 if found is None else found.arguments
    first = next_starter(words, start)
    own = words[start + (words[start : start + 1] in [[one] for one in _SUBMITS]) : first]
    if (
        first < len(words)
        and _NAME.match(words[at])
        and base(words[at]) not in _NO_STARTERS
        and all(map(_is_option, ["", *own], [*own, "--"]))
    ):
        behind = find_launcher(words[first:]) if found is None or not is_other_work(found.program) else None
        if behind is not None and behind.trains and (found is not None or not words[first].endswith(".py")):
            return first
    for index in range(start, len(words) - 1):
        if words[index] == "--":
            return index + 1 if next_starter(words, index + 1) == index + 1 else None
    return None


def _program(words: Sequence[str], at: int) -> LauncherMatch | None:
    name = base(words[at])
    if PYTHON.match(name):
        return _python(words, at)
    if name in SHELLS:
        return _shell(words, at)
    if name == "torchrun":
        return _torchrun(words, at + 1, at + 1)
    if name in ("deepspeed", "accelerate"):
        return _scan_for_script(words, at, name)
    if name == "tune" and list(words[at + 1 : at + 2]) == ["run"]:  # torchtune: torchrun's options, then a recipe
        recipe = _torchrun(words, at + 2, at + 2)
        return recipe and replace(recipe, program=f"tune run {recipe.program}", processes=None)
    if name in SUBCOMMANDS:
        return LauncherMatch("program", f"{name} {words[at + 1]}", at + 2) if at + 1 < len(words) else None
    if words[at] in ("-m", "--module"):
        return _module(words, at, None)
    if name.endswith(".py"):
        return LauncherMatch("program", words[at], at + 1)
    if name.endswith(_SHELL_FILES):
        return LauncherMatch("file", words[at], at)
    if any(word == "@" and file.endswith(".toml") for word, file in pairwise(words[at + 1 :])):
        return LauncherMatch("program", words[at], at + 1)  # a console script that pydantic-config configures
    return None


def _python(words: Sequence[str], at: int) -> LauncherMatch | None:
    interpreter = words[at] if "/" in words[at] else None
    index = at + 1
    while index < len(words):
        word = words[index]
        if word == "-m":
            return _module(words, index, interpreter)
        if word in ("-c", "-"):
            return None
        if word in ("-X", "-W"):
            index += 2
        elif word.startswith("-"):
            index += 1
        else:
            return LauncherMatch("program", word, index + 1, (at + 1, index), interpreter)
    return None


def _module(words: Sequence[str], at: int, interpreter: str | None) -> LauncherMatch | None:
    """`python -m module …`, where the module may itself be a launcher."""
    if at + 1 >= len(words):
        return None
    module = words[at + 1]
    launcher = _LAUNCH_MODULES.get(module)
    if module in _CONSOLE_MODULES and at + 2 < len(words):
        return LauncherMatch("program", f"{_CONSOLE_MODULES[module]} {words[at + 2]}", at + 3, (at, at), interpreter)
    if launcher is None:
        return LauncherMatch("program", module, at + 2, (at, at), interpreter)
    found = _torchrun(words, at + 2, at + 2) if launcher == "torchrun" else _scan_for_script(words, at + 1, launcher)
    return found and replace(found, interpreter=interpreter)


def _torchrun(words: Sequence[str], first: int, at: int) -> LauncherMatch | None:
    while at < len(words):
        word = words[at]
        if word in ("-m", "--module", "--") or (not word and _names_program(words, at + 1)):
            at += 1
        elif word.startswith("-"):
            at += 1 if "=" in word or word in _TORCHRUN_FLAGS else 2
        elif base(word) in SUBCOMMANDS and at + 1 < len(words):  # torchrun … $(which swift) sft
            return LauncherMatch("program", f"{base(word)} {words[at + 1]}", at + 2, (first, at), processes=1)
        else:
            return LauncherMatch("program", word, at + 1, (first, at), processes=1)
    return None


def _names_program(words: Sequence[str], at: int) -> bool:
    """Whether a program is named from `at` on: then an unknown word before it, `torchrun $ARGS train.py`, is none."""
    for index in range(at, len(words)):
        before = words[index - 1]
        bare = not before.startswith("-") or "=" in before or before in _TORCHRUN_FLAGS
        if words[index] in ("-m", "--module") or (words[index].endswith(".py") and bare):
            return True
    return False


def _scan_for_script(words: Sequence[str], at: int, name: str) -> LauncherMatch | None:
    first = at + 1
    if name == "accelerate" and words[at].endswith("accelerate"):
        if words[at + 1 : at + 2] != ["launch"]:
            return None
        first = at + 2
    for index in range(first, len(words)):
        if words[index] in ("-m", "--module") and index + 1 < len(words):
            return LauncherMatch("program", words[index + 1], index + 2, (first, index))
        if words[index].endswith(".py") and not words[index].startswith("-"):
            return LauncherMatch("program", words[index], index + 1, (first, index))
    return None


def _shell(words: Sequence[str], at: int) -> LauncherMatch | None:
    index = at + 1
    while index < len(words) and words[index].startswith("-") and words[index] != "--":
        if words[index] == "-s":
            return None
        if re.match(r"-\w*c$", words[index]):
            return LauncherMatch("text", "", index + 1) if index + 1 < len(words) else None
        index += 2 if words[index] in ("-o", "--rcfile", "--init-file") else 1
    return LauncherMatch("file", words[index], index) if index < len(words) else None


def _is_option(before: str, word: str) -> bool:
    """Whether a word is an option, or stands behind one that is not joined with its value; no command may be that."""
    valued = before.startswith("-") and "=" not in before and before != "--"
    return not valued if word == "--" else valued or word.startswith("-")


_NAME = regex(r"[\w./+-]+\Z")
_SUBMITS = ("run", "exec", "submit", "launch", "start")
"""Subcommands of a site's own launchers."""
_NO_STARTERS = {
    "echo", "printf", "which", "type", "pkill", "pgrep", "killall", "grep", "cat", "test", "[", "[[", ":", "true", "ls",
    "rm", "mv", "cp", "ps", "git", "source", ".", "export",
}  # fmt: skip
"""Commands that are told of other ones and start none."""
SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_SHELL_FILES = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".pbs", ".lsf", ".job")
_WRAPPERS = {
    "nohup", "time", "exec", "command", "builtin", "setsid", "sudo", "nice", "ionice", "chrt", "stdbuf", "timeout",
    "numactl", "taskset", "srun", "sbatch", "salloc", "bsub", "jsrun", "ibrun", "aprun", "flux", "mpirun", "mpiexec",
    "horovodrun", "apptainer", "singularity", "enroot", "docker", "nvidia-docker", "podman", "conda", "mamba",
    "micromamba", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "nsys", "ncu", "compute-sanitizer", "gdb", "perf",
    "valgrind", "strace", "py-spy", "memray", "scalene", "coverage", "xvfb-run", "unbuffer", "script", "flock", "xargs",
    "parallel", "ssh", "pdsh", "kubectl", "torchx", "tmux", "screen", "systemd-run", "gosu", "proxychains4", "watch",
    "wandb", "catchsegv", "retry",
}  # fmt: skip
"""Commands that run the rest of their line."""
_ENVIRONMENTS = {"conda", "mamba", "micromamba"}
"""Wrappers that run a command only behind `run`."""
_ELSEWHERE = {"ssh", "pdsh", "docker", "nvidia-docker", "podman", "kubectl"}
"""Wrappers whose command does not find the variables of the shell that calls them."""
_TEXT = {"ssh", "pdsh", "tmux", "screen", "watch", "parallel", "script"}
"""Wrappers whose last word may be shell text."""
SUBCOMMANDS = {"swift", "megatron", "trl", "llamafactory-cli", "axolotl", "xtuner", "tune"}
"""Console scripts whose first word says what to do."""
_STARTERS = {"torchrun", "deepspeed", "accelerate", "ray", "env", "uv"} | SHELLS | SUBCOMMANDS
_UV_TAKES = {
    "--extra", "--no-extra", "--group", "--no-group", "--only-group", "--env-file", "--with", "--with-editable",
    "--with-requirements", "-w", "--python", "-p", "--index", "--default-index", "-i", "--index-url",
    "--extra-index-url", "-f", "--find-links", "--project", "--directory", "--config-file", "--package",
    "--index-strategy", "--keyring-provider", "-P", "--upgrade-package", "--resolution", "--prerelease", "--color",
    "--exclude-newer", "--link-mode", "--refresh-package", "--reinstall-package", "-C", "--config-setting",
    "--no-build-package", "--no-binary-package", "--cache-dir", "--python-platform", "--python-preference",
}  # fmt: skip
"""Options of `uv run` with a value behind them."""
_ENVIRONMENT = regex(r"([A-Za-z_]\w*)=")
SPREADS = {"accelerate", "deepspeed", "srun", "mpirun", "mpiexec", "horovodrun", "jsrun"}
"""Launchers and wrappers that start a process on every card, or several, without an option that says so."""
_GIVES = {
    **dict.fromkeys(("docker", "nvidia-docker", "podman"), ("-e", "--env")),
    **dict.fromkeys(("apptainer", "singularity"), ("--env",)),
    "mpirun": ("-x",),
    "systemd-run": ("-E", "--setenv"),
    **dict.fromkeys(("srun", "sbatch"), ("--export",)),
}
"""Options that give variables to the command: NAME=value, for Slurm several with commas between them."""
_GOES_TO = {
    **dict.fromkeys(("docker", "nvidia-docker", "podman"), ("-w", "--workdir")),
    **dict.fromkeys(("srun", "sbatch", "sudo"), ("-D", "--chdir")),
    **dict.fromkeys(("apptainer", "singularity"), ("--pwd", "--cwd")),
    "env": ("-C", "--chdir"),
    "uv": ("--directory",),
    "systemd-run": ("--working-directory",),
}
"""Options that name the folder in which the command runs."""
_NAMES = {
    **dict.fromkeys(_ENVIRONMENTS, ("-n", "--name", "-p", "--prefix", "--cwd")),
    **dict.fromkeys(("docker", "nvidia-docker", "podman"), ("--name", "-h", "--hostname")),
    "srun": ("-J", "--job-name"), "tmux": ("-s", "-t", "-n"), "screen": ("-S",),
}  # fmt: skip
"""Options behind which a name stands, of an environment or a session, that may be a launcher's: `conda run -n trl`."""
PYTHON = regex(r"python[\d.]*$|pypy[\d.]*$")


def base(word: str) -> str:
    """A command without its folder."""
    return word.rsplit("/", 1)[-1]


def past_wrapper(words: Sequence[str], at: int, out: Wrapped) -> int:
    """The first word that can begin a command; the wrapper's own options come before it."""
    name = base(words[at])
    start = next_starter(words, at + 1)
    out.elsewhere = out.elsewhere or name in _ELSEWHERE
    flags = _GIVES.get(name, ())
    for index in range(at + 1, start):
        word = words[index]
        flag, equals, _ = word.partition("=")
        if flag in flags and equals:
            _give(index, len(flag) + 1, word, flag == "--export", out)
        elif words[index - 1] in flags or name == "sudo":
            _give(index, 0, word, words[index - 1] == "--export", out)
    _go(words, at, start, out)
    return start


def _go(words: Sequence[str], at: int, end: int, out: Wrapped) -> None:
    """Note the folder that an option of the wrapper at `at` names."""
    flags = _GOES_TO.get(base(words[at]), ())
    for index in range(at + 1, end):
        flag, equals, _ = words[index].partition("=")
        if equals and flag in flags and flag.startswith("--"):
            out.folder = index, len(flag) + 1
        elif words[index - 1] in flags:
            out.folder = index, 0


def _give(index: int, start: int, word: str, slurm: bool, out: Wrapped) -> None:
    """Note `A=1`, or Slurm's `ALL,A=1,B=2`, which shuts everything else out where it does not begin with ALL."""
    if not slurm:
        if _ENVIRONMENT.match(word[start:]):
            out.given.append(GivenVariable(index, start))
        out.kept.append(word[start:])
        return
    at = start
    names = word[start:].split(",")
    out.elsewhere = out.elsewhere or names[0] != "ALL"
    out.kept += names
    for part in names if word.isascii() else ():
        if _ENVIRONMENT.match(part):
            out.given.append(GivenVariable(index, at, at + len(part)))
        at += len(part) + 1


def past_env(words: Sequence[str], at: int, out: Wrapped) -> int:
    """Past `env`'s options and assignments."""
    while at < len(words):
        word = words[at]
        if word in ("-u", "--unset", "-C", "--chdir"):
            out.removed += words[at + 1 : at + 2] if word in ("-u", "--unset") else []
            at += 2
        elif word.startswith("-") or word == "":
            out.removed += [word.partition("=")[2]] if word.startswith("--unset=") else []
            out.unknown = out.unknown or not word
            out.elsewhere = out.elsewhere or word in ("-", "-i", "--ignore-environment")
            at += 1
        elif _ENVIRONMENT.match(word):
            out.given.append(GivenVariable(at))
            at += 1
        else:
            break
    return at


def past_ray(words: Sequence[str], at: int, out: Wrapped) -> int | None:
    """Everything after the bare `--` of `ray job submit` is the command."""
    if list(words[at + 1 : at + 3]) != ["job", "submit"]:
        return None
    dashes = next((index + 1 for index in range(at + 3, len(words)) if words[index] == "--"), None)
    start = next_starter(words, at + 3) if dashes is None else dashes
    if start >= len(words):
        return None
    for index in range(at, start):
        if words[index].startswith("--runtime-env-json="):
            out.runtime = index
        elif words[index] == "--runtime-env-json" and index + 1 < start:
            out.runtime = index + 1
    return start


def past_uv(words: Sequence[str], at: int) -> int | None:
    """The command, or the `-m` before a module, behind `uv run` and its options; `uv` for other uses is no command."""
    if words[at + 1 : at + 2] != ["run"]:
        return None
    at += 2
    while at < len(words):
        word = words[at]
        if word in ("-m", "--module"):
            return at
        if word == "--":
            return at + 1
        if not word.startswith("-"):
            return at
        at += 2 if word in _UV_TAKES else 1
    return None


def shell_text(words: Sequence[str], at: int) -> tuple[int, int] | None:
    """The word with shell text that a wrapper runs (`ssh host "…"`, `sbatch --wrap="…"`) and where it begins in it."""
    name = base(words[at])
    for index in range(at + 1, len(words)):
        if name == "sbatch" and words[index].startswith("--wrap="):
            return index, len("--wrap=")
        if name == "sbatch" and words[index] == "--wrap" and index + 1 < len(words):
            return index + 1, 0
    if name in _TEXT and len(words) > at + 1 and re.search(r"\s", words[-1]):
        return len(words) - 1, 0
    return None


def next_starter(words: Sequence[str], at: int) -> int:
    """The first word from `at` on that can begin a command."""
    named = [name for word in words[:at] for name in _NAMES.get(base(word), ())]
    for index in range(at, len(words)):
        name = base(words[index]) if words[index - 1] not in named else ""
        if name in _STARTERS or name in _WRAPPERS or PYTHON.match(name):
            return index
        if name.endswith((*_SHELL_FILES, ".py")) and not words[index].startswith("-"):
            return index
    return len(words)
