"""What a person writes of a shortage is an account of it, and what only speaks of memory is none."""

from .known import judge

NONE = """
Training hangs after step 3, GPU memory is fine.
NCCL watchdog timeout after 30 minutes; this is not an OOM, memory is fine on every rank.
WARNING: there is not enough KV cache space, preempting sequence group; the run goes on.
The OOM is fixed by lowering the micro batch but now the loss is NaN from step 1.
Is this an OOM?
I have enough memory, 80 GB per card, and still the loss explodes.
To avoid OOM, set gpu_memory_utilization to 0.5.
If you run out of memory, lower per_device_train_batch_size.
We reduced the batch to prevent running out of GPU memory; now the reward stays at zero.
This could lead to out of memory errors on small cards.
No OOM anymore after enabling gradient checkpointing, however the process gets SIGHUP.
I doubt it is memory: nvidia-smi shows 20 GB of 80 GB used when it crashes.
The docs say that FSDP may run out of memory on one card.
Adds a retry so that OOM errors are caught during generation.
Gradient checkpointing solved my OOM, the remaining problem is an illegal memory access at step 12.
We tested on 8 GPUs without any OOM, then an assertion fails in flash attention.
Memory usage is 40 GB at step 1 and 40 GB at step 1000.
显存还很充足，但是训练卡住不动了
没有OOM，只是NCCL超时
为了避免爆显存，我把batch设为1，现在报维度不匹配
How do I estimate whether a 70B model would OOM on 4 cards?
The tokenizer crashes with KeyError; host memory is at 10 percent.
Larger models typically OOM on consumer cards.
OOM killer was not involved according to dmesg.
Does the trainer support offloading? I don't want to exhaust my VRAM.
You will get CUDA out of memory with that setting.
Last week it went out of memory, now with ZeRO-3 it trains but the speed is 10 times lower.
Illegal memory access was encountered, not out of memory.
""".strip()
TOLD = """
gpu actor_update|Every run dies in the backward pass with a CUDA OOM as soon as a long sample arrives.
host data|While pre-tokenising the corpus the RAM grows until the node kills the job.
gpu model_load|The training process died while loading the checkpoint because of lack of VRAM.
gpu checkpoint|The 40GB cards run out of memory when saving the model at the end of the epoch.
unknown checkpoint|It OOMs after an epoch. Disabling checkpoint saving made the error go away, it went away at once.
shm unknown|The dataloader workers crash since /dev/shm ran out after 200 steps.
host model_load|Each rank loads the full model, which exhausts the host RAM during from_pretrained.
gpu optimizer_step|At the first optimizer step the GPU memory is exhausted.
gpu weight_sync|vLLM runs out of GPU memory when waking up after the policy update.
gpu validation|Evaluation leads to CUDA out of memory although training is fine.
gpu rollout_generate|During rollout generation I keep seeing VRAM OOM with sglang.
gpu log_prob|Computing the reference log probs fails with OOM on the GPU.
unknown unknown|Since updating transformers to 4.51 my run goes OOM with the same config.
gpu validation|评估的时候显存溢出了
host data|数据预处理阶段内存被打满，进程被杀
gpu checkpoint|保存模型时爆显存
gpu model_load|加载模型就显存不足，8卡A100
gpu unknown|训练到一半OOM了，单卡4090
gpu optimizer_step|优化器更新的时候显存不够，直接报错
gpu rollout_init|Launching vLLM on the same card as the trainer ends with out of memory.
host unknown|Our pod got OOMKilled twice last night at around step 1200.
gpu actor_update|If I use a micro batch of 2 I get a CUDA out of memory in the backward pass.
gpu model_load|Resuming from the checkpoint runs out of GPU memory, a fresh start is fine.
host unknown|The Ray workers use up all the system memory within an hour and die.
""".strip()
"""Memory and phase, and the sentence that tells them."""


def test_words_of_memory_without_a_shortage_are_no_account() -> None:
    told = {line: judge(f"{line}\n") for line in NONE.split("\n")}
    assert [line for line, crash in told.items() if crash.verdict == "oom"] == []


def test_a_sentence_tells_which_memory_ran_out_and_when() -> None:
    rows = [row.split("|") for row in TOLD.split("\n")]
    crashes = [judge(f"{line}\n") for _, line in rows]
    told = [f"{one.verdict} {one.memory} {one.phase}" for one in crashes]
    assert told == [f"oom {expected}" for expected, _ in rows]
