python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --load /data/ckpt --save /data/ckpt \
    --save-interval 20 --hf-checkpoint Qwen/Qwen3-4B --rollout-batch-size 32 --n-samples-per-prompt 8 \
    --rollout-max-response-len 8192 --global-batch-size 256 --tensor-model-parallel-size 2 --sequence-parallel \
    --use-dynamic-batch-size --max-tokens-per-gpu 40000 --advantage-estimator grpo --sglang-mem-fraction-static 0.7 \
    --num-layers 36 --hidden-size 2560 --ffn-hidden-size 9728 --num-attention-heads 32 --num-query-groups 8
