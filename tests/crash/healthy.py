# ruff: noqa: E501  (log lines as they are printed)
"""Logs of runs in which nothing failed, in the formats of several frameworks; each has something that looks like trouble."""

from .healthy_more import MORE

VERL_GOING_ON = """\
(TaskRunner pid=77) {'actor_rollout_ref': {'actor': {'ppo_mini_batch_size': 256,
(TaskRunner pid=77)                                  'fsdp_config': {'param_offload': False}},
(TaskRunner pid=77)                        'rollout': {'gpu_memory_utilization': 0.6, 'n': 5}},
(TaskRunner pid=77)  'trainer': {'n_gpus_per_node': 8}}
(WorkerDict pid=90) NCCL version 2.21.5+cuda12.4
(WorkerDict pid=90) Before building vllm rollout, memory allocated (GB): 3.56, memory reserved (GB): 17.46
(WorkerDict pid=90) INFO 03-04 10:11:12 model_runner.py:1430] If out-of-memory error occurs during cudagraph capture, \
consider decreasing `gpu_memory_utilization` or switching to eager mode.
(TaskRunner pid=77) step:1 - actor/kl_loss:0.000 - actor/grad_norm:0.841 - perf/max_memory_allocated_gb:41.642
(TaskRunner pid=77) step:2 - actor/kl_loss:0.001 - actor/grad_norm:0.712 - perf/max_memory_allocated_gb:41.702
(TaskRunner pid=77) [response] to avoid running out of memory we process the list in chunks; CUDA out of memory is an error
(TaskRunner pid=77) step:3 - actor/kl_loss:0.001 - actor/grad_norm:0.698 - perf/max_memory_allocated_gb:41.700
"""
VERL_FINISHED = (
    VERL_GOING_ON
    + """\
(WorkerDict pid=90) WARNING scheduler.py:1554] Sequence group 51 is preempted by PreemptionMode.RECOMPUTE mode because \
there is not enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=51
(TaskRunner pid=77) ("Final validation metrics: {'val/test_score/openai/gsm8k': 0.87}")
"""
)
SWIFT_FINISHED = """\
[INFO:swift] swift.__version__: 3.5.0
[WARNING:swift] If you encounter OOM, try a smaller --vllm_gpu_memory_utilization.
Train:   0%|          | 1/531 [00:56<8:16:19, 56.19s/it]
{'loss': 0.01, 'grad_norm': 0.7, 'memory(GiB)': 61.2, 'train_speed(iter/s)': 0.016, 'epoch': 0.0, 'global_step/max_steps': '1/531'}
Train: 100%|##########| 531/531 [8:16:19<00:00, 56.19s/it]
{'train_runtime': 29779.1, 'train_samples_per_second': 1.2, 'train_loss': 0.01, 'epoch': 1.0}
"""
OPENRLHF_GOING_ON = """\
(ActorModelRayActor pid=67842) [2025-02-22 21:53:45,813] [INFO] [logging.py:107:log_dist] [Rank 0] DeepSpeed info: version=0.16.9
(LLMRayActor pid=70001) INFO 02-22 21:54:10 worker.py:133] Sleep mode freed 46.35 GiB memory, 26.10 GiB memory is still in use.
(ActorModelRayActor pid=67842) [WARNING] [stage3.py:2118:step] 3 pytorch allocator cache flushes since last step. this \
happens when there is high memory pressure and is detrimental to performance.
Episode [1/20]:   5%|5         | 1/20 [04:10<1:19:10, 250.0s/it]
Episode [1/20]:  10%|#         | 2/20 [08:20<1:15:00, 250.0s/it]
Episode [1/20]:  15%|#5        | 3/20 [12:30<1:10:50, 250.0s/it]
"""
TRL_FINISHED = """\
Reward function raised; the sample gets 0:
Traceback (most recent call last):
  File "/home/u/rewards.py", line 12, in accuracy
    verify(answer)
  File "/usr/lib/python3.11/site-packages/math_verify/utils.py", line 43, in handler
    raise TimeoutError("Operation timed out!")
TimeoutError: Operation timed out!
{'loss': 0.0012, 'grad_norm': 0.31, 'learning_rate': 1e-06, 'epoch': 0.5}
{'loss': 0.0011, 'grad_norm': 0.30, 'learning_rate': 1e-06, 'epoch': 1.0}
{'train_runtime': 100.5, 'train_samples_per_second': 12.0, 'train_loss': 0.001, 'epoch': 1.0}
"""
SGLANG_GOING_ON = """\
[2025-06-11 03:12:11 TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=62.51 GB
[2025-06-11 03:12:31 TP0] Memory pool end. avail mem=9.91 GB
[2025-06-11 03:13:01 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 12, #new_token_ratio: 0.4 -> 0.9
(raylet) Spilled 21034 MiB, 312 objects, write throughput 812 MiB/s. Set RAY_verbose_spill_logs=0 to disable this message.
[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch allocator will free cache and retry)
(Runner pid=5) Running step:   2%|2         | 1.00/60.0 [02:12<2:10:00, 132s/it]
(Runner pid=5) Running step:   3%|3         | 2.00/60.0 [04:24<2:07:36, 132s/it]
(Runner pid=5) Running step:   5%|5         | 3.00/60.0 [06:36<2:05:24, 132s/it]
"""
AGENT_TOOLS = """\
(TaskRunner pid=77) step:11 - reward/mean:0.41
(AgentLoopWorker pid=88) [tool] Traceback (most recent call last):
(AgentLoopWorker pid=88)   File "<string>", line 3, in <module>
(AgentLoopWorker pid=88) NameError: name 'x' is not defined
(TaskRunner pid=77) step:12 - reward/mean:0.43
(AgentLoopWorker pid=88) [tool] the container was killed after 10 s; exit code 1
(TaskRunner pid=77) step:13 - reward/mean:0.44
"""
HEALTHY = {
    **MORE,
    "verl, going on": VERL_GOING_ON,
    "verl, finished": VERL_FINISHED,
    "ms-swift, finished": SWIFT_FINISHED,
    "OpenRLHF, going on": OPENRLHF_GOING_ON,
    "TRL, finished": TRL_FINISHED,
    "SGLang under EasyR1, going on": SGLANG_GOING_ON,
    "agent with tools that fail": AGENT_TOOLS,
}
