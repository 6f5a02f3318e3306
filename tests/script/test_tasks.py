"""Shell text in YAML files: tasks of SkyPilot's, manifests of Kubernetes'; and copies of config files."""

from __future__ import annotations

from pathlib import Path

from advisor.script.document import EditRequest
from tests.script.conftest import Edited, Read, values

TASK = """name: it's a task
resources:
  accelerators: H100:8
envs:
  KEY: ""
  LENGTH: 4096
setup: |
  cd sub
  if [ -z "$KEY" ]; then exit 1; fi
run: |
  python -m pkg.train --n $SKYPILOT_NUM_GPUS_PER_NODE \\
    --length $LENGTH --rate 1e-6
"""


def test_a_task_starts_what_its_blocks_run(read: Read, edited: Edited) -> None:
    (launch,) = read(TASK, "task.yaml").launches
    assert (launch.program, values(launch)) == ("pkg.train", {"--n": "8", "--length": "4096", "--rate": "1e-6"})
    changed = edited(TASK, EditRequest("--rate", "2e-6"), EditRequest("--length", "2048"), name="task.yaml")
    assert changed == TASK.replace("1e-6", "2e-6").replace("LENGTH: 4096", "LENGTH: 2048")


def test_a_folded_text_is_one_line_and_is_changed_as_one(read: Read, edited: Edited) -> None:
    text = "kind: RayJob\nspec:\n  entrypoint: >-\n    python train.py\n    --lr 1\n    --n 8\n"
    text += "  env: |\n    env_vars:\n      HF: /c\n"
    assert not read(text, "job.yaml").launches[0].cuts
    changed = edited(text, EditRequest("--lr", "2"), EditRequest("--new", "3"), name="job.yaml")
    assert changed == text.replace("--lr 1", "--lr 2").replace("--n 8", "--n 8 --new 3")
    assert not read(text.replace("--lr 1", "--lr 1 \\"), "job.yaml").launches[0].argv


def test_a_configuration_with_a_block_of_text_stays_one(read: Read) -> None:
    (launch,) = read("model: m\nprompt: |\n  Think first.\n", "run.yaml").launches
    assert launch.effective()["model"].value == "m"


def test_a_copy_of_a_config_file_is_read_as_the_file(read: Read, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("batch: 4\n")
    (launch,) = read("kubectl cp own.yaml $POD:/w/run.yaml\npython train.py --config /w/run.yaml\n").launches
    assert values(launch)["batch"] == "4"


COMPOSE = "services:\n  t:\n    image: x\n    environment:\n      BS: 32\n    command: {}\n    ports: [1]\n"


def test_a_command_of_docker_compose_gets_its_variables_from_the_file_beside_it(edited: Edited, tmp_path: Path) -> None:
    text = COMPOSE.format(">\n      python train.py --lr 1\n      --bs ${BS:-4}")
    assert edited(text, EditRequest("--bs", "2"), name="a.yaml") == text.replace(":-4", ":-2")
    (tmp_path / ".env").write_text("# it is\nBS=16\n")
    assert edited(text, EditRequest("--bs", "2"), name="a.yaml") == text.replace("4}", "4} --bs 2")


def test_a_command_is_read_on_its_line_and_in_a_list_and_to_compose_ends_of_lines_are_blanks(
    read: Read, edited: Edited
) -> None:
    words = ["python", "train.py", "--bs", '"4"', "--lr", "1"]
    for told in (
        "python train.py --bs 4 --lr 1",
        '"python train.py --bs 4 --lr 1"',
        f"[{', '.join(words)}]",
        "".join(f"\n      - {word}" for word in words),
        "|\n      python train.py\n      --bs 4\n      --lr 1",
    ):
        text = COMPOSE.format(told)
        assert not read(text, "a.yaml").launches[0].cuts, told
        assert edited(text, EditRequest("--bs", "2"), name="a.yaml") == text.replace("4", "2"), told
