"""Computes a formula's printed text again."""

from __future__ import annotations

import math
import re

from advisor.units import GIB, KIB, MIB

_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": KIB, "%": 0.01}
_FUNCTIONS = {"min": min, "max": max, "ceil": math.ceil, "round": round}
_TOKEN = re.compile(
    r"(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)|(GiB|MiB|KiB|%)|(min|max|ceil|round)(?=\()|([-+−×÷(),])|([^\W\d][^\s(),]*|\S)"
)


def evaluate(text: str) -> float:
    """The value of a formula's text: numbers, units, `+ − × ÷ min max ceil`, brackets; words say nothing."""
    code = []
    for number, unit, function, sign, _word in _TOKEN.findall(text):
        if number:
            code.append(number.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", number) else number.rstrip(","))
            if number.endswith(","):
                code.append(",")
        elif unit:
            code.append(f"*{_UNITS[unit]}")
        elif function:
            code.append(function)
        elif sign:
            code.append({"−": "-", "×": "*", "÷": "/"}.get(sign, sign))
    # A number and its unit bind tighter than the operators around them.
    joined = re.sub(r"([\d.e+-]+) \*([\d.]+)", r"(\1*\2)", " ".join(code))
    return float(eval(joined, {"__builtins__": {}}, _FUNCTIONS))
