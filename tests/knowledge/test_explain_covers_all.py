"""`explain` knows every id of the shipped knowledge and every native key of every dialect."""

from __future__ import annotations

from advisor.hostile import cells
from advisor.knowledge import load_knowledge
from advisor.report.explain_report import all_ids, explain_report
from tests.loops import each

K = load_knowledge()
ENTRIES = [
    *(
        entry.id
        for group in (K.knobs, K.remedies, K.advisories, K.cases, K.tree.questions, K.tree.causes)
        for entry in group
    ),
    *(signature.id for signature in K.signatures.signatures),
]


@each("framework", K.frameworks, ids=lambda dialect: dialect.framework)
def test_every_key_of_a_dialect_old_and_new_is_explained(framework) -> None:
    for key in (*framework.settings, *framework.environment, *framework.renamed, *framework.renamed.values()):
        assert framework.title in " ".join(explain_report(K, key).split()), key


def test_every_id_is_explained_with_its_source_or_its_reason() -> None:
    for wanted in ENTRIES:
        assert len(explain_report(K, wanted).splitlines()) >= 2, wanted


def test_no_line_is_wider_than_a_terminal() -> None:
    wide = {wanted for wanted in all_ids(K) for line in explain_report(K, wanted).splitlines() if cells(line) > 80}
    assert {wanted for wanted in wide if len(wanted) < 60} == set()
