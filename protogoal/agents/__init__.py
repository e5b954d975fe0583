"""Agents: wiring of the parts in `deep` and `goals`, each a small difference from its parent."""
