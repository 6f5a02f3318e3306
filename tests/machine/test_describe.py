"""Flags, files, and what wins over what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.machine.describe import described, from_log, merge
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.inventory_json import to_json
from advisor.machine.nodes import join_nodes
from advisor.units import GIB
from tests.loops import each
from tests.machine_file import read_machine_file
from tests.replacing import replace

from .facts import A100_40, FACTS


def measured(gpus: int = 8, size: int = 40 * GIB, **more: object) -> Machine:
    machine = Machine(
        nodes=1,
        gpus=tuple(Gpu(index, "NVIDIA A100-SXM4-40GB", size, used_bytes=0) for index in range(gpus)),
        host=Host(
            total_bytes=500 * GIB, limit_bytes=400 * GIB, limit_source="cgroup v2 x", oom_kills=1, shm_bytes=64 * GIB
        ),
        libraries={"torch": "2.5.1", "ray": "2.40.0"},
        environment="/opt/conda ($CONDA_PREFIX)",
        driver="550.54.15",
        sources=dict.fromkeys(
            ["nodes", "gpus", "host.total", "host.limit", "shm", "libraries.torch", "libraries.ray"], "measured"
        ),
    )
    return replace(machine, **more)  # type: ignore[arg-type]


LAPTOP = measured(
    gpus=0,
    driver="",
    problems=("NVML: no driver library",),
    sources={name: source for name, source in measured().sources.items() if name != "gpus"},
)


def test_flags_describe_a_machine():
    machine = described(
        FACTS,
        gpus="8xA100-40GB",
        nodes=4,
        host_ram="760GB",
        shm="64GB",
        libraries=["DeepSpeed=0.16.3", "flash_attn==2.7.4"],
    )
    assert (machine.nodes, len(machine.gpus), machine.gpu_bytes) == (4, 8, A100_40.total_bytes)
    assert (machine.host.total_bytes, machine.host.shm_bytes) == (760 * GIB, 64 * GIB)
    assert machine.libraries == {"deepspeed": "0.16.3", "flash-attn": "2.7.4"}
    assert machine.sources == dict.fromkeys(
        ["nodes", "gpus", "host.total", "shm", "libraries.deepspeed", "libraries.flash-attn"], "described"
    )


def test_an_assumed_size_is_a_problem_said_once():
    (problem,) = described(FACTS, gpus="8xA100").problems
    assert "A100-40GB is assumed" in problem


@each(
    ("text", "total", "limit"),
    [
        ("16g RAM", 16, None),
        ("~1TB RAM", 1024, None),
        ("512 GB memory on the node", 512, None),
        ("1.5 TB per node, Slurm mem limit 1200G", 1536, 1200),
        ("252G, full", 252, None),
        ("256GB (200GB free), 64 cores", 256, None),
        ("1,024 GB", 1024, None),
        ("1,5TB RAM,64 cores", 1536, None),
        ("MemTotal: 536870912 kB", 512, None),
        ("       total  used\nMem:   503Gi  20Gi  400Gi", 503, None),
        ("512G内存", 512, None),
        ("64 GB DDR5 and a 2TB NVMe", 64, None),
    ],
)
def test_ram_is_read_in_peoples_words(text: str, total: int, limit: int | None):
    host = described(FACTS, host_ram=text).host
    assert (host.total_bytes, host.limit_bytes) == (total * GIB, limit * GIB if limit else None)


@each("text", ["2 x 64GB", "128GB or 256GB", "80GB VRAM", "lots"])
def test_words_that_leave_the_ram_open_are_refused(text: str):
    with pytest.raises(ValueError, match=r"^--host-ram"):
        described(FACTS, host_ram=text)


def test_ram_and_nodes_beside_the_cards_are_told():
    machine = described(FACTS, gpus="2 nodes, 8xA100 40GB each, 1TB RAM")
    assert (machine.nodes, len(machine.gpus), machine.host.total_bytes) == (2, 8, 1024 * GIB)
    assert described(FACTS, gpus="4xA100 with 80GB memory").host.total_bytes is None


def test_the_logs_size_tells_which_card_a_name_means():
    told = described(FACTS, gpus="4xA100")
    merged = merge(Machine(), told, from_log(gpu_bytes=79 * GIB), FACTS)
    assert (merged.gpus[0].name, merged.problems) == ("A100-80GB", ())
    assert merge(Machine(), told, from_log(gpu_bytes=31 * GIB), FACTS).gpus == told.gpus


def test_nothing_described_is_nothing_known():
    assert described(FACTS) == Machine()


@each(
    ("flag", "arguments"),
    [
        ("--gpus", {"gpus": "what"}),
        ("--nodes", {"nodes": 0}),
        ("--host-ram", {"host_ram": "much"}),
        ("--host-ram", {"host_ram": "0GB"}),
        ("--shm", {"shm": "-1GB"}),
        ("--lib", {"libraries": ["deepspeed"]}),
        ("--lib", {"libraries": ["=1.0"]}),
        ("--lib", {"libraries": ["a b=1.0"]}),
    ],
)
def test_a_wrong_flag_is_named(flag: str, arguments: dict[str, object]):
    with pytest.raises(ValueError, match=f"^{flag}"):
        described(FACTS, **arguments)  # type: ignore[arg-type]


def test_a_machine_file_is_described_and_flags_override_it(tmp_path: Path):
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(to_json(measured())))
    machine = described(FACTS, machine_files=[file], host_ram="760GB", libraries=["ray=2.9"])
    assert (len(machine.gpus), machine.host.ceiling_bytes) == (8, 760 * GIB)
    assert machine.libraries == {"torch": "2.5.1", "ray": "2.9"}
    assert set(machine.sources.values()) == {"described"}


def test_the_machine_block_of_a_diagnosis_is_a_machine_file(tmp_path: Path):
    file = tmp_path / "diagnosis.json"
    file.write_text(json.dumps({"schema": 1, "machine": to_json(measured())}))
    assert len(read_machine_file(file).gpus) == 8


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ('{\n"gpus": [,]}', "line 2"),
        ("\x00\xff", "not JSON"),
        ("[]", "must be an object"),
        ("{}", "not a machine description"),
        ('{"gpus": 8}', "gpus must be a list"),
        ('{"gpus": [{"total_bytes": "80GB"}]}', r"gpus\[0\].total_bytes"),
        ('{"nodes": 0}', "nodes"),
        ("[" * 20000, "not JSON"),
    ],
)
def test_a_wrong_machine_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, says: str):
    file = tmp_path / "machine.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=says) as raised:
        read_machine_file(file)
    assert str(raised.value).startswith(str(file))


def test_a_folder_is_no_machine_file(tmp_path: Path):
    with pytest.raises(ValueError, match="folder"):
        read_machine_file(tmp_path)


def test_a_missing_machine_file_is_an_os_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        read_machine_file(tmp_path / "gone")


def test_several_files_are_several_nodes_and_the_smallest_decides(tmp_path: Path):
    small = measured(host=Host(total_bytes=300 * GIB, shm_bytes=1 * GIB), libraries={"torch": "2.4.0", "ray": "2.40.0"})
    joined = join_nodes([measured(), small, measured()])
    assert (joined.nodes, len(joined.gpus)) == (3, 8)
    assert (joined.host.ceiling_bytes, joined.host.shm_bytes) == (300 * GIB, 1 * GIB)
    said = " ".join(joined.problems)
    assert "differ in host memory" in said
    assert "torch: 2.4.0 on node 2; 2.5.1 on the 2 others" in said
    assert "differ in GPUs" not in said


def test_alike_nodes_give_no_problem():
    assert join_nodes([measured(), measured()]).problems == ()


# --- merging -------------------------------------------------------------------------------------------------------


def test_without_more_the_measured_machine_stands():
    merged = merge(measured(), Machine())
    assert merged == measured()


def test_described_wins_over_measured_field_by_field():
    merged = merge(measured(), described(FACTS, gpus="8xA100-40GB", nodes=4, libraries=["ray=2.9"]))
    assert (merged.nodes, merged.gpus[0].name) == (4, "A100-40GB")
    assert merged.libraries == {"torch": "2.5.1", "ray": "2.9"}
    assert merged.host == measured().host, "the same cards are in this box, so its RAM is the run's"
    assert merged.sources["gpus"] == merged.sources["nodes"] == merged.sources["libraries.ray"] == "described"
    assert merged.sources["host.total"] == merged.sources["libraries.torch"] == "measured"


def test_a_described_total_lifts_the_limit_measured_here():
    merged = merge(measured(), described(FACTS, host_ram="760GB"))
    assert merged.host.ceiling_bytes == 760 * GIB
    assert merged.host.shm_bytes == 64 * GIB
    assert merged.sources["host.total"] == "described"
    assert "host.limit" not in merged.sources


def test_measured_wins_over_the_log():
    log = from_log(gpu_bytes=79 * GIB, host_bytes=100 * GIB, libraries={"vllm": "0.8.2", "torch": "2.6.0"})
    merged = merge(measured(), Machine(), log)
    assert (merged.gpu_bytes, merged.host.total_bytes) == (40 * GIB, 500 * GIB)
    assert merged.libraries == {"torch": "2.5.1", "ray": "2.40.0", "vllm": "0.8.2"}
    assert merged.sources["libraries.vllm"] == "log"
    assert "79.00 GiB" in " ".join(merged.problems), "the log seems to be of another machine"


def test_a_box_counts_only_itself_so_the_logs_nodes_win():
    merged = merge(measured(), Machine(), from_log(nodes=4))
    assert (merged.nodes, merged.sources["nodes"]) == (4, "log")
    assert merge(measured(), described(FACTS, nodes=2), from_log(nodes=4)).nodes == 2


def test_on_a_box_without_gpus_the_log_counts_before_the_box():
    log = from_log(
        gpu_bytes=39 * GIB, gpu_names=["A100"], gpu_count=8, host_bytes=760 * GIB, libraries={"torch": "2.4.0"}
    )
    merged = merge(LAPTOP, Machine(), log)
    assert (len(merged.gpus), merged.gpu_bytes, merged.host.ceiling_bytes) == (8, 39 * GIB, 760 * GIB)
    assert merged.libraries == {"torch": "2.4.0", "ray": "2.40.0"}
    assert (merged.sources["gpus"], merged.sources["host.total"]) == ("log", "log")
    assert merged.problems == ()


def test_a_card_of_unknown_memory_has_what_the_log_prints():
    stranger = described(FACTS, gpus="8xZeta-910")
    merged = merge(LAPTOP, stranger, from_log(gpu_bytes=61 * GIB, gpus_seen=3))
    assert ([gpu.name for gpu in merged.gpus], merged.gpu_bytes) == (["Zeta-910"] * 8, 61 * GIB)
    assert "its memory is what the log prints, 61.00 GiB" in " ".join(merged.problems)
    unknown = merge(LAPTOP, stranger, from_log())
    assert (len(unknown.usable), unknown.gpu_bytes) == (8, None)
    assert "add its memory, like Zeta-910-24GB" in " ".join(unknown.problems)


def test_a_log_that_counts_no_cards_names_some_of_them():
    counted, some = from_log(gpu_bytes=GIB, gpu_count=4), from_log(gpu_bytes=GIB, gpus_seen=3)
    assert [len(one.gpus) for one in (counted, some, from_log(gpu_bytes=GIB))] == [4, 3, 1]
    assert [merge(LAPTOP, Machine(), one).more_gpus for one in (counted, some)] == [False, True]
    assert not merge(LAPTOP, described(FACTS, gpus="8xA100-40GB"), some).more_gpus


def test_a_laptops_ram_is_not_taken_for_the_machine_described():
    merged = merge(LAPTOP, described(FACTS, gpus="8xA100-40GB"))
    assert merged.host == Host()
    assert "host.total" not in merged.sources
    assert "--host-ram" in " ".join(merged.problems)
    assert "NVML" not in " ".join(merged.problems)


def test_described_host_memory_leaves_nothing_to_complain_about():
    assert merge(LAPTOP, described(FACTS, gpus="8xA100-40GB", host_ram="760GB")).problems == ()


def test_other_cards_than_this_boxs_mean_another_box():
    assert merge(measured(), described(FACTS, gpus="8xH100")).host == Host()
    assert merge(measured(), described(FACTS, gpus="4xA100-40GB")).host == Host()


def test_a_box_without_gpus_and_nothing_more_shows_itself():
    assert merge(LAPTOP, Machine()) == LAPTOP


def test_a_log_without_sizes_describes_no_cards():
    assert from_log() == Machine()
    assert from_log(gpu_names=["\x1b[31mA100"]).gpus == (Gpu(0, "A100", None),)
