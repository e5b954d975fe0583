"""Agent57 (Badia et al. 2020), the paper's strongest baseline: R2D2 plus a family of policies from curious to greedy.

    mixture       β_j, γ_j of the N policies
    memory        episodic novelty: distance to what was seen in the last episodes
    neighbours    the search for the nearest of them
    embedding     the controllable part of a state, in which that distance is taken
    curiosity     with lifelong novelty (`agents.distillation`): r_i of every transition, as a view of the environments
    split         Q = Q_e + β_j Q_i: two networks, two optimisers, one greedy policy
    bandit        which policy to follow in the next episode
    act           acting with the policy it chose
    agent         the wiring

Replay, returns, acting and the engines are those of `deep` and `run`; the index j takes the place of the goal.
"""
