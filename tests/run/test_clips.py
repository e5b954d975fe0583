"""Clips of a training run: recorded now and then, bounded, and without a trace in what is learned."""

import io

import numpy as np
import pytest
from PIL import Image

from protogoal.config import TabularConfig
from protogoal.record import queries
from protogoal.record.events import Progressed
from protogoal.record.schema import STATE
from protogoal.record.store import Store, StoreReader
from protogoal.run import clips
from protogoal.run.clips import ClipRecorder
from protogoal.run.tabular import TabularSession


class Session:
    """Plays 500 frames of a size of its own; succeeds at the task alone."""

    step = 70

    def play(self, goal, seed):
        for t in range(500):
            yield np.full((300, 700, 3), t % 256, np.uint8), "step" if goal is not None else "delivered "


def snapshot(**columns):
    return {"id": np.arange(3), "declared": 3, **{name: np.zeros(3) for name in STATE}, **columns}


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "run.db") as store:
        yield store


def stored(store):
    store.flush()
    with StoreReader(store.path) as reader:
        return queries.clips(reader), queries.events(reader)


def test_the_task_a_mastered_goal_and_a_hard_one_are_recorded(store):
    state = snapshot(offered=np.array([0, 1, 1]), mastered=np.array([1, 0, 1]))
    store.refresh(70, state, lambda goal: (f"goal {goal}", "x", None, (goal,), ()))
    ClipRecorder(Session(), store).record()
    found, _ = stored(store)
    assert [(clip["kind"], clip["success"]) for clip in found] == [("pursuit", 0), ("pursuit", 0), ("player", 1)]
    assert found[0]["goal"] == 1
    assert found[1]["goal"] in (0, 2)
    assert all(clip["step"] == 70 and clip["bytes"] < 1_000_000 for clip in found)


def test_a_long_one_is_played_to_its_end_and_keeps_few_frames(store):
    class Long(Session):
        def play(self, goal, seed):
            for t in range(300):
                yield np.full((20, 20, 3), t % 256, np.uint8), "won" if t == 299 else "step"

    ClipRecorder(Long(), store).record()
    (clip,), _ = stored(store)
    assert clip["success"] == 1
    with StoreReader(store.path) as reader, Image.open(io.BytesIO(queries.clip_gif(reader, clip["id"]))) as picture:
        assert picture.n_frames == clips.MOST_FRAMES


def test_a_short_run_records_nothing_by_itself(store, monkeypatch):
    recorder = ClipRecorder(Session(), store)
    recorder.maybe_record()
    recorder.finish()
    assert stored(store)[0] == []
    monkeypatch.setattr(clips, "FIRST_SECONDS", 0.0)
    recorder = ClipRecorder(Session(), store)
    recorder.maybe_record()
    recorder.maybe_record()  # not again so soon: that would be more than its share
    assert len(stored(store)[0]) == 1
    recorder.finish()
    assert len(stored(store)[0]) == 2


def test_a_picture_that_cannot_be_drawn_ends_the_clips_and_not_the_run(store, monkeypatch):
    monkeypatch.setattr(clips, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(clips, "SHARE", np.inf)  # clips are due always
    tried = []

    class Broken(Session):
        def play(self, goal, seed):
            tried.append(goal)
            raise RuntimeError("no video driver")

    recorder = ClipRecorder(Broken(), store)
    recorder.maybe_record()
    recorder.maybe_record()
    assert len(tried) == 1
    found, told = stored(store)
    assert found == []
    assert [event["text"] for event in told] == ["no clips from here on: RuntimeError: no video driver"]


def test_a_session_that_cannot_play_has_no_clips(store, monkeypatch):
    monkeypatch.setattr(clips, "FIRST_SECONDS", 0.0)
    ClipRecorder(object(), store).maybe_record()
    assert stored(store)[0] == []


def test_recording_leaves_no_trace_in_training(tmp_path):
    """The same seed with and without clips: the same tests, the same tables."""
    pytest.importorskip("pygame", reason="Gymnasium draws Taxi with pygame")
    ends = []
    for record in (False, True):
        session = TabularSession(TabularConfig(steps=3_000))
        with Store.create(tmp_path / f"{record}.db") as store:
            recorder, metrics = ClipRecorder(session, store), []
            for event in session.train():
                event.to(store)
                if isinstance(event, Progressed):
                    metrics.append((event.step, event.facts["success"]))
                    if record:
                        recorder.record()
            if record:
                assert len(stored(store)[0]) > 2
        ends.append((metrics, session.agent.q.copy()))
    assert ends[0][0] == ends[1][0]
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
