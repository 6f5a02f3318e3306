"""What a page tells of the machine and the run beside the crash: versions, RAM, cards, nodes, settings, projects."""

from advisor.crash.log_facts import project_in
from advisor.crash.read import read_text
from advisor.knowledge import load_knowledge
from advisor.machine.gpu_spec import cards_told
from advisor.machine.ram_words import ram_listed, ram_of_page
from advisor.run.dialect import recognise
from advisor.run.version_notes import title_of
from advisor.script.pasted import engine_arguments, variables_in
from advisor.units import GIB

KNOWLEDGE = load_knowledge()
SIGNATURES = KNOWLEDGE.signatures
ENVIRONMENT = """- `transformers` version: 4.46.3
- PyTorch version (GPU?): 2.5.1+cu124 (True)
| vllm | 0.8.4 |
[pip3] trl==0.9.4
deepspeed info ................... 0.15.4, unknown
with verl 0.3.1 and ray 2.43.0 on CUDA 12.4
vllm 0.8.5 requires torch==2.7.0
"""


def test_versions_are_read_wherever_a_line_lists_them():
    found = read_text(ENVIRONMENT, "log", SIGNATURES).libraries
    names = {"transformers": "4.46.3", "torch": "2.5.1+cu124", "vllm": "0.8.4", "trl": "0.9.4", "deepspeed": "0.15.4"}
    assert {name: found.get(name) for name in (*names, "verl")} == {**names, "verl": "0.3.1"}


def test_ram_is_what_a_node_has_and_not_what_is_used():
    told = {
        "一张H100，96G显存，全参数微调，744G CPU memory": 744,
        "The machine has 251GB of RAM and 4x A6000.": 251,
        "机器内存512G，8张A100": 512,
        "- System RAM: 503.5 GB": 503.5,
        "RAM reached 400GB": None,
        "内存占用到 500G": None,
        "I have 8 GPUs with 80GB memory": None,
        "Of the allocated memory 94.21 GiB is allocated by PyTorch": None,
    }
    for text, size in told.items():
        assert ram_of_page([text]) == (None if size is None else round(size * GIB)), text
    rows = {"Mem:          251Gi       240Gi": 251, "Mem:            503         480": 503, "Mem:   515072  43": 503}
    for text, size in rows.items():
        assert ram_listed([text]) == size * GIB, text


def test_ranks_cards_and_nodes_are_counted():
    smi = "|   {}  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |\n"
    texts = {
        "".join(f"[launch.py:318:sigkill_handler] Killing subprocess {pid}\n" for pid in (1, 2, 2, 3)): ("ranks", 3),
        smi.format(0) + smi.format(1): ("cards", 2),
        "GPU 0: NVIDIA A40\nGPU 1: NVIDIA A40\n": ("cards", 2),
        "9台机器，每台8*A800 80G 显存OOM": ("nodes", 9),
        "We run on 2 nodes with 8 H100 each, out of memory": ("nodes", 2),
    }
    for text, (name, count) in texts.items():
        assert read_text(text, "log", SIGNATURES).counts.get(name) == count, text
    assert [cards_told(text, ()).counted for text in ("3090", "A100 40GB (Colab)", "2x3090", "一张H100", "a T4")] == [
        *(False, False),
        *(True, True, True),
    ]


def test_settings_in_lists_tables_and_objects_of_a_page_are_described():
    page = "My run:\n| train_batch_size | 512 |\n- fsdp_config: {'fsdp_offload_params': True}\n显存OOM\n"
    found = read_text(page, "log", SIGNATURES).described
    assert found == {"train_batch_size": "512", "fsdp_config.fsdp_offload_params": "true"}
    told = b"os.environ[\"UNSLOTH_VLLM_STANDBY\"] = \"1\"\nos.environ.setdefault('A_B', '2')\n%env C_D=3\n"
    assert variables_in(told) == {"UNSLOTH_VLLM_STANDBY": "1", "A_B": "2", "C_D": "3"}
    call = b"llm = LLM(model=path,\n  gpu_memory_utilization=0.9, max_model_len=2000)\naccelerate launch train.py\n"
    assert {one.key: one.text for one in engine_arguments(call)} == {
        "LLM.gpu_memory_utilization": "0.9",
        "LLM.max_model_len": "2000",
    }


def test_a_project_is_no_release_of_what_it_is_built_on():
    path = "/home/u/{}/verl/workers/actor/dp_actor.py"
    for name, era in {"SimpleVLA-RL": "v0.1-fork", "RAGEN": "v0.4", "My-Fork": "v0.4"}.items():
        project = project_in(path.format(name), SIGNATURES.projects)
        found = recognise(None, "", ["verl"], {}, {}, KNOWLEDGE.frameworks, [path.format(name)], project=project)
        assert (title_of(found), found.era) == (f"{name}, built on verl", era)
    project = project_in("namespace: RLinf", SIGNATURES.projects)
    found = recognise(None, "", [], {}, {}, KNOWLEDGE.frameworks, project=project)
    assert title_of(found) == "RLinf, whose code is not known here"


def test_a_kill_that_the_kernel_log_explains_is_a_shortage():
    crash = read_text("exitcode -9\n查看dmesg发现OOM\n", "log", SIGNATURES)
    assert (crash.verdict, crash.memory) == ("oom", "host")
