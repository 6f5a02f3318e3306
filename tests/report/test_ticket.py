"""The ticket: short, ASCII, and without what is nobody's business."""

from advisor.demo import demo_files
from advisor.report.sharing import anonymous
from advisor.report.ticket import COLUMNS, LINES, ticket
from advisor.session import SessionRequest, open_session
from tests.loops import each
from tests.replacing import replace

DEMO = demo_files()


def test_it_fits_a_mail_and_tells_what_matters() -> None:
    text = ticket(open_session(SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,))))
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert text.isascii()
    assert "Host RAM ran out during the actor update" in text
    assert "offload_params" in text
    assert "10.0.4.17" not in text


def test_hostile_evidence_cannot_make_it_longer_or_control_a_terminal() -> None:
    state = open_session(SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,)))
    bad = tuple(replace(one, text="\x1b]52;c;eA==\x07" + "显" * 5000) for one in state.crash.evidence)
    text = ticket(replace(state, crash=replace(state.crash, evidence=bad)))
    assert "\x1b" not in text
    assert len(text.splitlines()) <= LINES


@each(
    ("given", "left"),
    [
        ("/home/ana/runs/a.sh:9", "a.sh:9"),
        ("~/runs/a.sh", "a.sh"),
        ('File "/opt/x/y.py", line 3', 'File "y.py", line 3'),
        ("(WorkerDict pid=7, ip=10.0.0.3)", "(WorkerDict pid=7, host=...)"),
        ("node 192.168.7.9 is full", "node ... is full"),
        ("mail ana@corp.example now", "mail ... now"),
        ("id 5c1de0a9f27b4438b1e6c0f3a8d95b7742e6", "id ..."),
        ("Qwen/Qwen2.5-7B 3/4", "Qwen/Qwen2.5-7B 3/4"),
        ("https://github.com/a/b/issues/9", "https://github.com/a/b/issues/9"),
    ],
)
def test_names_of_people_hosts_and_folders_are_left_out(given: str, left: str) -> None:
    assert anonymous(given) == left


def test_secrets_are_left_out() -> None:
    assert "hf_" not in anonymous("HF_TOKEN=hf_abcdefghijklmnop python train.py")
