"""The tabular agents (paper appendix A, Algorithm 1): settings → tables → kernels → agent → training."""
