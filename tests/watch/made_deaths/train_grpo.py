from transformers.trainer_utils import get_last_checkpoint

trainer.train(resume_from_checkpoint=get_last_checkpoint(config.output_dir))
