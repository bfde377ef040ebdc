"""What other systems of this kind are known to stumble over, where no other test shows Proctor's answer yet."""

from __future__ import annotations

import typing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from proctor.api.documents import MAX_BYTES, DocumentError, parse_document
from proctor.core.agents.prompt import PromptLimits, neutral_prompt
from proctor.core.ids import AttemptKey
from proctor.core.scenarios.brief import load_brief
from proctor.local.dataset_files import SeedRequest
from proctor.local.rundir import SUITE_DIGEST_ANNOTATION, create_run
from proctor.reconcile.plan import Action, EndAttempt, StartAttempt, StopAttempt
from support.manifests import manifest, real_model, suite, text
from support.playing import SCENARIOS
from support.runs import NOW, make_suite

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = SCENARIOS / "error-root-cause"


def test_p10_a_cell_waits_for_no_start_signal() -> None:
    """P10: nothing is ever sent to an attempt between its start and its end, so none can be missed."""
    told = {action for action in typing.get_args(Action) if AttemptKey in typing.get_type_hints(action).values()}
    assert told == {StartAttempt, StopAttempt, EndAttempt}


def test_p16_a_manifest_is_bounded_before_it_is_read() -> None:
    """P16: what would not fit beside an object's annotations is refused with a clear message."""
    large = text(manifest()).replace('"made"', '"made", "x": "' + "x" * MAX_BYTES + '"')
    with pytest.raises(DocumentError, match="larger than 256 KiB"):
        parse_document(large)


def _list_unbounded(schema: Any, path: str = "") -> list[str]:
    if isinstance(schema, list):
        return [line for part in schema for line in _list_unbounded(part, path)]
    if not isinstance(schema, dict):
        return []
    found = [path] if schema.get("type") == "array" and "maxItems" not in schema else []
    return found + [line for name, part in schema.items() for line in _list_unbounded(part, f"{path}/{name}")]


@pytest.mark.parametrize("path", sorted((ROOT / "crds").glob("*.yaml")), ids=lambda path: path.stem)
def test_p16_every_list_of_an_object_is_bounded(path: Path) -> None:
    """P16, P17: no object can grow until the API server refuses it."""
    assert _list_unbounded(YAML(typ="safe").load(path)) == []


def test_p21_an_agent_is_not_judged_by_itself() -> None:
    """P21: the agent's own model as judge is refused, unless the suite says that it is meant."""
    model = real_model()
    judge = {"anthropic": model["anthropic"]}
    with pytest.raises(ValidationError, match="allowSelfJudge"):
        suite(models=[model], judge=judge)
    assert suite(models=[model], judge={**judge, "allowSelfJudge": True}).spec.judge.allow_self_judge


def test_p36_runs_of_the_same_moment_share_nothing(tmp_path: Path) -> None:
    """P36: names, uids and folders are each run's own, so that no leftover of one can poison the next."""
    made = [
        create_run(
            tmp_path, suite_name="twice", suite=make_suite(), annotations={SUITE_DIGEST_ANNOTATION: "aa"}, now=NOW
        )
        for _ in "ab"
    ]
    assert len({directory.path for directory, _ in made}) == len(made)
    assert len({run.metadata.uid for _, run in made}) == len(made)


def test_p40_data_do_not_age() -> None:
    """P40: the anchor is part of the dataset's hash, and every agent is told it as the time that it is."""
    anchor = datetime(2026, 11, 30, 12, tzinfo=UTC)
    hashes = {
        SeedRequest(SCENARIO, seed=1, anchor=at, volume=Decimal("0.01")).hash
        for at in (anchor, anchor, anchor + timedelta(days=1))
    }
    assert len(hashes) == 2
    told = neutral_prompt(load_brief(SCENARIO), anchor, PromptLimits(max_turns=25, max_tool_calls=40))
    assert "2026-11-30T12:00" in told.system
