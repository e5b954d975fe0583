"""A module that cannot be imported: its author forgot a line."""

make = Maze  # noqa: F821
