#!/bin/bash
BATCH=64
torchrun --nproc_per_node 8 train_rl.py \
    --model my-model \
    --batch-size $BATCH \
    --lr 1e-6
