"""A process that ends itself at one of its checkpoints, so that no test of kills waits for a moment that has passed."""

import os
import threading

from protogoal.run import checkpoint, training


def die_at(number, delay, how):
    """From here on every step that may be saved is; at the `number`th save, or `delay` seconds later, the signal `how` comes."""
    save, left = checkpoint.save, [number]

    def saving(*arguments, **named):
        left[0] -= 1
        if left[0] == 0 and delay:
            threading.Timer(delay, os.kill, (os.getpid(), how)).start()
        elif left[0] == 0:
            os.kill(os.getpid(), how)
        return save(*arguments, **named)

    checkpoint.save = saving
    training.CHECKPOINT_SECONDS, training.CHECKPOINT_SHARE = 0.0, 1e9
