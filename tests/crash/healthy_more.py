# ruff: noqa: E501  (log lines as they are printed)
"""More logs of runs in which nothing failed: other frameworks, other moments, other things that look like trouble."""

EASYR1 = """\
(Runner pid=11) {"data": {"max_prompt_length": 2048}, "worker": {"actor": {"global_batch_size": 128}}}
(WorkerDict pid=12) After vllm offload in sharding manager: 7.87 GB / 79.10 GB.
(Runner pid=11) Running step:   1%|          | 1.00/80.0 [03:10<4:10:10, 190s/it]
(WorkerDict pid=12) INFO 06-11 03:12:11 worker.py:133] Sleep mode freed 46.35 GiB memory, 26.10 GiB memory is still in use.
(Runner pid=11) Running step:   2%|2         | 2.00/80.0 [06:20<4:07:00, 190s/it]
(Runner pid=11) Running step:   4%|3         | 3.00/80.0 [09:30<4:03:50, 190s/it]
"""
LOGIC_RL = """\
(main_task pid=77) step:7 - reward: 0.31
(main_task pid=77) [Error] Failed to parse JSON of the answer; the process of elimination was killed by a wrong premise
(main_task pid=77) step:8 - reward: 0.35
(main_task pid=77) step:9 - reward: 0.36
"""
OPEN_REASONER_ZERO = """\
(LLMActor pid=5) INFO 02-01 10:00:00 block_manager.py: GPU KV cache size: 812,000 tokens
(PolicyRayActorBase pid=6) Train epoch [1/1]:  10%|# | 12/120 [01:00<09:00, 5.0s/it]
(PolicyRayActorBase pid=6) Train epoch [1/1]:  11%|# | 13/120 [01:05<08:55, 5.0s/it]
(PolicyRayActorBase pid=6) Train epoch [1/1]:  12%|# | 14/120 [01:10<08:50, 5.0s/it]
"""
DEEPSPEED_CHAT = """\
[2023-04-20 10:00:00,000] [INFO] [utils.py:786:see_memory_usage] MA 14.51 GB         Max_MA 14.6 GB         CA 15.02 GB         Max_CA 15 GB
[2023-04-20 10:00:00,000] [INFO] [stage_1_and_2.py:1652:step] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
{'epoch': 0.1, 'step': 10, 'act_loss': 0.02}
{'epoch': 0.2, 'step': 20, 'act_loss': 0.02}
{'epoch': 0.3, 'step': 30, 'act_loss': 0.01}
"""
AXOLOTL = """\
[2025-01-05 10:00:01,200] [INFO] [axolotl.load_model:700] [PID:4242] Memory usage after model load 14.512GB (+14.722GB allocated, +15.672GB reserved)
{'loss': 1.91, 'grad_norm': 0.8, 'learning_rate': 2e-05, 'epoch': 0.01}
{'train_runtime': 3600.2, 'train_samples_per_second': 2.1, 'train_loss': 1.1, 'epoch': 1.0}
[2025-01-05 11:00:01,200] [INFO] [axolotl.train.train:170] [PID:4242] Training Completed!!! Saving pre-trained model to ./out
"""
UNSLOTH = """\
==((====))==  Unsloth 2025.3.19: Fast Qwen2 patching. Transformers: 4.50.0. vLLM: 0.8.2.
   \\\\   /|    NVIDIA L4. Num GPUs = 1. Max memory: 22.161 GB. Platform: Linux.
Unsloth: vLLM's KV Cache can use up to 8.51 GB. Also swap space = 5 GB.
INFO 03-04 10:11:12 [model_runner.py:1442] Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode.
{'loss': 0.0, 'reward': 1.2, 'epoch': 0.01}
{'train_runtime': 900.0, 'train_loss': 0.001, 'epoch': 1.0}
"""
TORCHRUN_RESTARTED_BY_HAND = """\
W0611 03:12:11.000000 4242 torch/distributed/run.py:766] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded
[rank0]:[W611 03:12:15.000000 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.
{'loss': 0.5, 'epoch': 1.0}
{'train_runtime': 100.5, 'train_samples_per_second': 12.0, 'train_loss': 0.5, 'epoch': 1.0}
"""
VLLM_V1_GOING_ON = """\
(EngineCore_DP0 pid=553) INFO 09-17 04:55:13 [gpu_worker.py:360] Available KV cache memory: 41.20 GiB
(EngineCore_DP0 pid=553) INFO 09-17 04:55:14 [kv_cache_utils.py:1087] GPU KV cache size: 812,112 tokens
(EngineCore_DP0 pid=553) INFO 09-17 04:55:14 [kv_cache_utils.py:1091] Maximum concurrency for 32,768 tokens per request: 24.78x
Capturing CUDA graphs (decode, FULL): 100%|##########| 67/67 [00:03<00:00, 18.1it/s]
(TaskRunner pid=77) step:1 - critic/score/mean:0.21
(TaskRunner pid=77) step:2 - critic/score/mean:0.22
(TaskRunner pid=77) step:3 - critic/score/mean:0.25
"""
RAY_NOISE = """\
2025-06-11 03:12:11,123 INFO worker.py:1879 -- Started a local Ray instance. View the dashboard at 127.0.0.1:8265
(raylet) WARNING: 8 PYTHON worker processes have been started on node: 7ab3 with address: 10.0.0.1.
(TaskRunner pid=77) step:40 - perf/cpu_memory_used_gb:188.20
(TaskRunner pid=77) step:41 - perf/cpu_memory_used_gb:188.40
(TaskRunner pid=77) step:42 - perf/cpu_memory_used_gb:188.50 [repeated 7x across cluster]
"""
CODE_REWARDS = """\
(RewardManager pid=5) [sandbox] MemoryError in the program of sample 12; reward 0
(RewardManager pid=5) [sandbox] process exited with code 1, killed after 10 s
(TaskRunner pid=77) step:5 - reward/mean:0.41
(RewardManager pid=5) [response] The allocator calls malloc; when it returns NULL we are out of memory, so exit code -1 is returned.
(TaskRunner pid=77) step:6 - reward/mean:0.42
(TaskRunner pid=77) step:7 - reward/mean:0.42
"""
MEGATRON = """\
 [2025-06-11 03:12:11] iteration       10/    5000 | consumed samples:          640 | elapsed time per iteration (ms): 8123.0 | lm loss: 2.1E+00
[Rank 0] (after 10 iterations) memory (MB) | allocated: 38123.1 | max allocated: 61123.9 | reserved: 70122.0 | max reserved: 70122.0
 [2025-06-11 03:13:31] iteration       20/    5000 | consumed samples:         1280 | elapsed time per iteration (ms): 8101.0 | lm loss: 2.0E+00
(TaskRunner pid=77) step:20 - loss:2.0
(TaskRunner pid=77) step:21 - loss:2.0
(TaskRunner pid=77) step:22 - loss:1.9
"""
SLURM_FINISHED = """\
+ srun --label torchrun --nproc_per_node 8 train.py
0: {'loss': 0.4, 'epoch': 0.9}
0: {'train_runtime': 12000.0, 'train_loss': 0.4, 'epoch': 1.0}
Job ID: 1883514
State: COMPLETED (exit code 0)
Memory Utilized: 410.20 GB
Memory Efficiency: 80.12% of 512.00 GB
"""
TRL_WITH_SERVER = """\
INFO:     127.0.0.1:41234 - "POST /generate/ HTTP/1.1" 200 OK
{'loss': 0.0, 'grad_norm': 0.2, 'completions/clipped_ratio': 0.1, 'epoch': 0.01}
UserWarning: None of the inputs have requires_grad=True. Gradients will be None
{'loss': 0.0, 'grad_norm': 0.2, 'completions/clipped_ratio': 0.1, 'epoch': 0.02}
{'loss': 0.0, 'grad_norm': 0.2, 'completions/clipped_ratio': 0.1, 'epoch': 0.03}
"""
MORE = {
    "EasyR1, going on": EASYR1,
    "Logic-RL with failing parsers": LOGIC_RL,
    "Open-Reasoner-Zero, going on": OPEN_REASONER_ZERO,
    "DeepSpeed-Chat, going on": DEEPSPEED_CHAT,
    "axolotl, finished": AXOLOTL,
    "unsloth, finished": UNSLOTH,
    "torchrun, finished with a warning": TORCHRUN_RESTARTED_BY_HAND,
    "verl on vLLM V1, going on": VLLM_V1_GOING_ON,
    "verl with Ray's noise": RAY_NOISE,
    "code rewards that run out of their own memory": CODE_REWARDS,
    "Megatron under verl": MEGATRON,
    "Slurm, finished": SLURM_FINISHED,
    "TRL with a vLLM server, going on": TRL_WITH_SERVER,
}
