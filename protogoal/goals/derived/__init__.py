"""Proto-goals that follow from what an environment observes: one file a kind of observation. `envs.derive` puts them together."""
