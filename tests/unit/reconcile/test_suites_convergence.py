"""Passes over a suite end: from every state that a kill between two effects can leave, with nothing made twice."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.api.run import Verdict
from support.suites import IMAGE_A, IMAGE_B, FakeNamespace, following_spec, make_suite

Event = Callable[[FakeNamespace], None]


def end_all(verdict: Verdict) -> Event:
    def end(world: FakeNamespace) -> None:
        for name, run in world.runs.items():
            if not run.status.terminal:
                world.end(name, verdict)

    return end


def follow(image: str | None) -> Event:
    def change(world: FakeNamespace) -> None:
        world.images = {} if image is None else {"candidate": image}

    return change


def edit(**changes: object) -> Event:
    return lambda world: world.edit(following_spec(**changes))


EVENTS: list[Event] = [
    end_all(Verdict.PASS),
    end_all(Verdict.FAIL),
    follow(IMAGE_A),
    follow(IMAGE_B),
    follow(None),
    edit(schedule="0 3 * * *"),
    edit(history={"passed": 0, "failed": 1}),
    edit(runRequestId="again"),
    lambda world: world.tick(days=1),
    lambda world: world.tick(hours=2),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3)), max_size=8))
def test_a_decider_killed_anywhere_goes_on(story: list[tuple[Event, int]]) -> None:
    """P11, P12: after each event it dies some effects into its plan; in the end all is as if it had never died."""
    world = FakeNamespace(make_suite(following_spec()), images={"candidate": IMAGE_A})
    for event, effects in story:
        event(world)
        world.apply(world.decide(), effects=effects)
        killed = deepcopy(world)
        world.settle()
        killed.settle()
        assert killed.suite.status == world.suite.status
        assert killed.runs.keys() == world.runs.keys()
    world.settle()
    assert world.decide().empty
    assert len(world.created) == len(set(world.created))


def test_one_run_per_generation_and_image() -> None:
    """M-A11: whatever is repeated, each pair of generation and image is judged once, and a return to it counts too."""
    world = FakeNamespace(make_suite(following_spec()), images={"candidate": IMAGE_A})
    for image in (IMAGE_A, IMAGE_B, IMAGE_A):
        world.images["candidate"] = image
        world.settle()
        end_all(Verdict.PASS)(world)
        world.settle()
    assert len(world.created) == 2
    world.edit(following_spec(replicates=4))
    world.settle()
    assert len(world.created) == 3
