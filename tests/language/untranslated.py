"""What a translation lacks, and what it has too much: `python -m tests.language.untranslated zh [ROOM]`.

Prints, by catalogue, the missing texts as JSON to be filled in, then the texts that nothing says any more.
"""

from __future__ import annotations

import json
import sys

from advisor.folders import knowledge_folder
from tests.language.texts import ADVISOR, knowledge_texts, program_texts


def compared(language: str) -> dict[str, tuple[list[str], list[str]]]:
    """Catalogue file → (missing texts, stale texts)."""
    answer = {}
    sources = ((program_texts(), ADVISOR / "languages" / language), (knowledge_texts(), knowledge_folder() / language))
    for wanted, folder in sources:
        for room in sorted({*wanted, *(file.stem for file in folder.glob("*.json"))}):
            file = folder / f"{room}.json"
            has = json.loads(file.read_text("utf-8")) if file.is_file() else {}
            texts = wanted.get(room, {})
            answer[str(file.relative_to(ADVISOR.parent))] = (
                [text for text in texts if text not in has],
                [text for text in has if text not in texts],
            )
    return answer


def main(arguments: list[str]) -> int:
    """Print the comparison; 1 where anything is missing or stale."""
    language, only = arguments[0], arguments[1:]
    wrong = 0
    for file, (missing, stale) in compared(language).items():
        if only and not any(file.endswith(f"/{room}.json") for room in only):
            continue
        wrong += len(missing) + len(stale)
        print(f"{file}: {len(missing)} missing, {len(stale)} stale")
        if only:
            print(json.dumps({"missing": dict.fromkeys(missing, ""), "stale": stale}, ensure_ascii=False, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
