# ruff: noqa: E501  (log lines as they are printed; the randomness is for variety)
"""A long training log as a verl run under Ray leaves it: redraws, prefixes, metrics, warnings, prose, a trace at its end.

python -m tests.benchmarks.made_log 1000 > /tmp/run.log      (megabytes)
"""

import random
import sys
from collections.abc import Iterator

BLOCK_LINES = 2_000
BLOCKS = 96
ESCAPE = "\x1b[36m({who}, ip=10.0.0.{node})\x1b[0m "
WORDS = [
    "so",
    "we",
    "first",
    "compute",
    "the",
    "value",
    "of",
    "the",
    "integral",
    "then",
    "note",
    "that",
    "x",
    "squared",
    "minus",
    "four",
    "equals",
    "zero",
    "hence",
    "each",
    "term",
    "is",
    "bounded",
    "by",
    "the",
    "sum",
    "over",
    "all",
    "divisors",
    "and",
    "the",
    "answer",
    "follows",
    "from",
    "the",
    "triangle",
    "inequality",
    "because",
    "every",
    "process",
    "may",
    "take",
    "part",
    "once",
    "we",
    "count",
    "total",
    "available",
    "pairs",
    "wait",
    "check",
    "error",
    "terms",
    "sequence",
    "number",
    "token",
    "step",
    "group",
    "model",
]
CHANCE = (
    "if the list is large the program may run out of memory so we stream it",
    "the kernel was Killed by the administrator in this story",
    "raises MemoryError when the buffer cannot grow",
    "an OOM in this exercise means order of magnitude",
    "CUDA out of memory errors are discussed in chapter three",
    "we tried to allocate the budget to three projects",
    "the total capacity of the tank is 40 litres",
)
WARNINGS = (
    "/usr/lib/python3.11/site-packages/torch/utils/checkpoint.py:87: UserWarning: None of the inputs have requires_grad=True",
    "WARNING 03-04 10:11:12 [scheduler.py:1554] Sequence group 51 is preempted by PreemptionMode.RECOMPUTE mode because "
    "there is not enough KV cache space. This can affect the end-to-end performance.",
    "INFO 03-04 10:11:12 [worker.py:133] Sleep mode freed 46.35 GiB memory, 6.10 GiB memory is still in use.",
    "Before compute_log_prob, memory allocated (GB): 12.30, memory reserved (GB): 40.10, device memory used/total (GB): 61.20/79.15",
    "[tool] Traceback (most recent call last):",
    "[tool] NameError: name 'x' is not defined",
)
TRACE = """\
{e}Error executing job with overrides: ['trainer.n_gpus_per_node=8']
{e}Traceback (most recent call last):
{e}  File "/home/u/verl/trainer/main_ppo.py", line 25, in main
{e}    run_ppo(config)
{e}  File "/home/u/verl/workers/actor/dp_actor.py", line 301, in update_policy
{e}    loss.backward()
{e}  File "/opt/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
{e}    torch.autograd.backward(
{e}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 3 has a total capacity of 79.15 GiB of \
which 11.42 GiB is free. Including non-PyTorch memory, this process has 67.72 GiB memory in use. Of the allocated memory \
60.21 GiB is allocated by PyTorch, with 1.20 GiB allocated in private pools (e.g., CUDA Graphs), and 5.33 GiB is reserved \
by PyTorch but unallocated.
"""


def block(rng: random.Random) -> bytes:
    """Some 500 KiB of ordinary lines, a few of which hold an anchor by chance."""
    return "".join(_line(rng, number) for number in range(BLOCK_LINES)).encode()


def _line(rng: random.Random, number: int) -> str:
    kind = rng.random()
    who = ESCAPE.format(who=f"WorkerDict pid={rng.randrange(10**4, 10**6)}", node=rng.randrange(8))
    if kind < 0.30:
        done = rng.randrange(100)
        return f"Training Progress: {done:3d}%|{'█' * (done // 10)}{' ' * (10 - done // 10)}| {done}/100 [{done}:07<1:02:11, 31.2s/it]\r"
    if kind < 0.45:
        return f"{who}Processed prompts: {rng.randrange(100):3d}%|###  | {number}/2048 [00:31<00:{rng.randrange(60):02d}, est. speed]\r"
    if kind < 0.55:
        pairs = (f"actor/{rng.choice(WORDS)}_{i}:{rng.random():.6f}" for i in range(40))
        return f"\x1b[36m(TaskRunner pid=77)\x1b[0m step:{number} - {' - '.join(pairs)} - perf/max_memory_allocated_gb:41.642\n"
    if kind < 0.995:
        return f"{who}[response] {' '.join(rng.choices(WORDS, k=rng.randrange(20, 80)))}\n"
    if kind < 0.9975:
        return f"{who}[response] {' '.join(rng.choices(WORDS, k=20))} {rng.choice(CHANCE)} {' '.join(rng.choices(WORDS, k=30))}\n"
    return f"{who}{rng.choice(WARNINGS)}\n"


def made_log(megabytes: int, seed: int = 7) -> Iterator[bytes]:
    """The log in pieces: blocks in random order, then a traceback that ends in torch's message."""
    rng = random.Random(seed)
    blocks = [block(rng) for _ in range(BLOCKS)]
    left = megabytes * 10**6
    while left > 0:
        piece = rng.choice(blocks)
        left -= len(piece)
        yield piece
    yield ("\n" + TRACE.format(e=ESCAPE.format(who="WorkerDict pid=90", node=3))).encode()


if __name__ == "__main__":
    for part in made_log(int(sys.argv[1])):
        sys.stdout.buffer.write(part)
