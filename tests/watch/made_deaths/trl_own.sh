accelerate launch --num_processes 8 -m trl.scripts.grpo --deepspeed zero3.json \
    --model_name_or_path Qwen/Qwen2.5-7B-Instruct --output_dir out --save_steps 50 --bf16 true \
    --per_device_train_batch_size 16 --gradient_accumulation_steps 4 --num_generations 8 \
    --max_completion_length 4096 --gradient_checkpointing true --learning_rate 1e-6
