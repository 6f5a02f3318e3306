"""What this box has: NVML, host memory and its limits, libraries of the training environment."""
