"""CUDA for the measurements: the driver API, libraries, GPUs, kernels and products."""
