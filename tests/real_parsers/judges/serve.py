"""Asks one framework's parser: `python -m judges.serve FRAMEWORK TREE` answers every JSON line with another.

A question holds `argv` (the words after the program), `program`, `cwd` and `environment`; an answer `accepted`, `error`
and `values`, flat: a name as the framework has it → a JSON value.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, their names joined by dots; what JSON has no word for as its repr."""
    if isinstance(value, dict) and (value or not name):
        parts = (flat(item, f"{name}.{key}" if name else str(key)) for key, item in value.items())
        return {key: item for part in parts for key, item in part.items()}
    return {name: value if isinstance(value, (str, int, float, bool, list)) or value is None else repr(value)}


def main() -> None:
    """Answer until the questions end."""
    framework, tree = sys.argv[1], Path(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print is no answer
    sys.path.insert(0, str(tree))
    os.chdir(tree)
    judge = importlib.import_module(f"judges.{framework}")
    parse = judge.opened(tree)
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["cwd"])
        kept = dict(os.environ)
        os.environ.update(asked["environment"])
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                values = flat(parse(asked["program"], asked["argv"]))
            answer = {"accepted": True, "error": "", "values": values}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a parser raises is its refusal
            printed_last = "".join(printed.getvalue().strip().splitlines()[-1:])
            said = printed_last if isinstance(error, SystemExit) else str(error)
            if os.environ.get("SHOW"):
                import traceback

                traceback.print_exc()
            answer = {"accepted": False, "error": f"{type(error).__name__}: {said}"[:600], "values": {}}
        os.environ.clear()
        os.environ.update(kept)
        answers.write(json.dumps(answer, default=repr) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
