export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1
"$TRL_PYTHON" train_grpo.py \
    --model_name_or_path model \
    --output_dir out \
    --use_cpu true \
    --bf16 false \
    --per_device_train_batch_size 32 \
    --num_generations 8 \
    --max_completion_length 96 \
    --shuffle_dataset false \
    --dataloader_num_workers 4 \
    --dataloader_prefetch_factor 1 \
    --save_steps 2 \
    --max_steps 16 \
    --logging_steps 1 \
    --learning_rate 1e-3 \
    --seed 7 \
    --report_to none
