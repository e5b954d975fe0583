"""The Ray engine: the parts of the local loop, each in a process of its own, on one machine or many (paper, Figure 8).

    workers ──segments──→ replay shards ──batches──→ learner ──weights──→ workers, player
       └──bits, rewards, pursuits──→ proto-goal evaluator ──goal sets──→ workers, learner

One file a role (`worker`, `shard`, `learner`, `pge`, `player`), with two classes each: the role itself, which runs in its
own process and calls the functions that `run.local` calls; and its client, which runs in the session's process and knows
what the role was asked and what to do when it dies. `session` puts the clients together. `cluster` finds or starts Ray,
`supervisor` starts the roles and replaces the dead, `pacing` holds the ratio of learning to acting, `state` turns all of it
into the checkpoint that the local engine writes too.
"""
