"""The cross-fitted estimator for one goal at a time, step by step: the slow, obvious version of goals/crossfit.py.

Effects of actions are written here with one copy of the features per action, z ⊗ (e_a − 1/A), which is another way to say
the same: the ridge solution is that of the A − 1 orthonormal contrasts of the fast version.
"""

import numpy as np


def ridge_weights(phi, y, penalty):
    """argmin_w |y − Φw|² + Σ penalty·w²."""
    return np.linalg.solve(phi.T @ phi + np.diag(penalty), phi.T @ y)


class Model:
    """P(s, a) = z·w + z·(e_a − mean of all e), fitted by ridge regression."""

    def __init__(self, z, action, y, num_actions, ridge, action_ridge):
        k = z.shape[1]
        centred = np.eye(num_actions) - 1.0 / num_actions
        phi = np.concatenate([z] + [z * centred[action, [a]][:, None] for a in range(num_actions)], axis=1)
        weights = ridge_weights(phi, y, np.repeat([ridge] + [action_ridge] * num_actions, k))
        self.shared = weights[:k]
        effects = weights[k:].reshape(num_actions, k)
        self.effects = effects - effects.mean(axis=0)

    def mean(self, z):
        """P averaged over actions, [n]."""
        return z @ self.shared

    def effect(self, z):
        """What each action adds to it, [n, A]."""
        return z @ self.effects.T

    def value(self, z, opt, reliability):
        """clip(mean + ρ·opt_a effect, 0, 1), [n]."""
        return np.clip(self.mean(z) + reliability * opt(self.effect(z), axis=1), 0.0, 1.0)


def crossfit(features, action, terminated, attained, num_actions, settings, order):
    """(max V_seek, mean V_seek, mean V_avoid) of one goal; attained bool[n]; `features` and `order` as in the fast version."""
    s = settings
    b = attained.astype(float)
    go_on = s.discount * (1.0 - terminated)
    half = len(order) // 2
    halves = [order[:half], order[half:]]

    def regression(part, rows, y):
        return Model(features[part][0][rows], action[rows], y, num_actions, s.ridge, s.action_ridge)

    def backup(model, part, rows, opt, reliability):
        return b[rows] + (1 - b[rows]) * go_on[rows] * model.value(features[part][1][rows], opt, reliability)

    # How many attainments does the state alone not foretell?
    evidence = 0.0
    for j in (0, 1):
        own, other = features[j][0][halves[j]], features[j][0][halves[1 - j]]
        inverse = np.linalg.inv(own.T @ own + s.ridge * np.eye(own.shape[1]))
        forecast = np.clip(other @ inverse @ own.T @ b[halves[j]], 0, 1)
        leverage = np.array([z @ inverse @ z for z in other])
        evidence += np.sum((b[halves[1 - j]] - forecast) ** 2 / (1 + leverage))

    # Trial on each half, then test the effects of one half on the residuals of the other.
    total = square = error = 0.0
    last_targets = {}
    for name, opt in (("seek", np.max), ("avoid", np.min)):
        models, targets = [], []
        for j in (0, 1):
            y = b[halves[j]]
            model = regression(j, halves[j], y)
            for _ in range(s.trial_iterations - 1):
                y = backup(model, j, halves[j], opt, 1.0)
                model = regression(j, halves[j], y)
            models.append(model)
            targets.append(y)
        for j in (0, 1):
            rows = halves[j]
            residual = targets[j] - models[j].mean(features[j][0][rows])
            effect = models[1 - j].effect(features[1 - j][0][rows])[np.arange(len(rows)), action[rows]]
            total += np.sum(effect * residual)
            square += np.sum(effect**2)
            error += np.sqrt(np.sum((effect * residual) ** 2))
        last_targets[name] = np.empty(len(b))
        last_targets[name][order] = np.concatenate(targets)
    reliability = 0.0
    if total > 0:
        slope, t = total / square, total / error
        reliability = min(slope, 1.0) * max(0.0, 1.0 - (s.significance / t) ** 2)

    # Value iteration on the whole batch, with effects as far as they can be relied on.
    rows = np.arange(len(b))
    middle = (last_targets["seek"] + last_targets["avoid"]) / 2
    values = {}
    for name, opt in (("seek", np.max), ("avoid", np.min)):
        model = regression(2, rows, middle + reliability * (last_targets[name] - middle))
        for _ in range(s.iterations):
            model = regression(2, rows, backup(model, 2, rows, opt, reliability))
        values[name] = model.value(features[2][0], opt, reliability)
    undecided = (b.sum() < 4 or evidence > 0.5) and evidence < s.min_evidence
    avoid_mean = np.nan if undecided else -values["avoid"].mean()
    return values["seek"].max(), values["seek"].mean(), avoid_mean


def crossfit_seek_avoid(features, action, terminated, attained, num_actions, settings, order):
    """The same for every goal, each [G]; attained bool[n, G]."""
    rows = [crossfit(features, action, terminated, column, num_actions, settings, order) for column in attained.T]
    return tuple(np.array(rows).reshape(-1, 3).T)
