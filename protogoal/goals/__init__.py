"""The proto-goal evaluator (paper §3–4)."""
