"""A program of the form that resumes by itself; it is read and never run."""

from datasets import load_dataset
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser


def reward(completions: list[str], **_: object) -> list[float]:
    return [float(len(text)) for text in completions]


if __name__ == "__main__":
    config, model = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()
    data = load_dataset("openai/gsm8k", "main", split="train")
    trainer = GRPOTrainer(model=model.model_name_or_path, args=config, reward_funcs=reward, train_dataset=data)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(config.output_dir))
