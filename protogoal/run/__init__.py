"""Running agents: directory (files of a run), progress (what people see), local (one process), ray (many), checkpoint."""
