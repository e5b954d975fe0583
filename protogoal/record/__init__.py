"""What a run leaves behind: one SQLite file, and the ways to look at it."""
