"""Measures and describes machines: GPUs by NVML, host memory and its limits, libraries of the environment."""
