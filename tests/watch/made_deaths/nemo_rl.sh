uv run examples/run_grpo_math.py --config examples/configs/grpo_math_8B.yaml \
    policy.model_name=meta-llama/Llama-3.1-8B-Instruct cluster.gpus_per_node=8 cluster.num_nodes=1 \
    policy.train_micro_batch_size=8 policy.max_total_sequence_length=4096 checkpointing.enabled=true \
    checkpointing.save_period=10 checkpointing.checkpoint_dir=results/grpo
