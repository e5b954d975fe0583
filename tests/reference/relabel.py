"""Attainment and rewards of goals, one transition and one goal at a time."""


def attains(active, members):
    """Whether every bit of the goal is among the transition's; both padded with -1, and no goal is attained by nothing."""
    bits = {int(i) for i in active if i >= 0}
    wanted = {int(i) for i in members if i >= 0}
    return bool(wanted) and wanted <= bits


def reward_and_discount(active, members, reward, terminated, task_discount, goal_discount):
    """(r, γ) of one transition for one goal; no members is the task."""
    if all(i < 0 for i in members):
        return reward, 0.0 if terminated else task_discount
    attained = attains(active, members)
    return float(attained), 0.0 if attained or terminated else goal_discount
