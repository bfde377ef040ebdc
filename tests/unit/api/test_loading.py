"""Manifests: what is refused, with which words, at which line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from proctor.api.loading import InvalidManifest, digest_suite, load_suite, parse_suite
from proctor.api.suite import EvalSuite
from support.manifests import PRICE, manifest, real_model, server, text

JUDGE = {"model": "claude-x", "secretKeyRef": {"name": "a", "key": "k"}}


def _problems(document: dict[str, Any]) -> str:
    with pytest.raises(InvalidManifest) as caught:
        parse_suite(text(document), file="suite.yaml")
    return str(caught.value)


CASES = [
    ("unknown-field", {"replikates": 3}, "spec.replikates", "did you mean replicates?"),
    ("snake-case", {"run_on_change": True}, "spec.run_on_change", "did you mean runOnChange?"),
    ("wrong-type", {"replicates": "3"}, "spec.replicates", "integer"),
    ("float", {"scenarios": [{"name": "a", "volume": 0.02}]}, "spec.scenarios[0].volume", '"0.02" in quotes'),
    ("volume-zero", {"scenarios": [{"name": "a", "volume": "0"}]}, "spec.scenarios[0].volume", "greater than 0"),
    ("not-a-number", {"scenarios": [{"name": "a", "volume": "NaN"}]}, "spec.scenarios[0].volume", "decimal"),
    ("no-anchor", {"anchor": None}, "spec.anchor", "anchorPolicy"),
    ("anchor-without-zone", {"anchor": "2026-11-30T12:00:00"}, "spec.anchor", "zone"),
    ("two-anchors", {"anchorPolicy": "LatestDay"}, "spec.anchor", "exactly one"),
    ("duplicate-server", {"servers": [server("x"), server("x")]}, "spec.servers[1]", "already item 0"),
    ("bad-name", {"servers": [server("../x"), server("current")]}, "spec.servers[0].name", "form"),
    ("two-transports", {"servers": [server(http={"url": "https://x"}), server("b")]}, "spec.servers[0]", "exclude"),
    ("no-tools", {"servers": [server(allowedTools=None), server("b")]}, "spec.servers[0]", "deniedTools"),
    ("sql-tool-denied", {"servers": [server(allowedTools=["x"]), server("b")]}, "sqlTool.name", "run_query"),
    ("env-of-nothing", {"servers": [server(env=[{"name": "X"}]), server("b")]}, "env[0]", "secretKeyRef"),
    ("env-twice", {"servers": [server(env=[{"name": "X", "value": ""}] * 2), server("b")]}, "env[1]", "already"),
    ("header-on-stdio", {"servers": [server(headers=[{"name": "X", "value": "y"}]), server("b")]}, "headers", "http"),
    ("no-model-source", {"models": [{"name": "m"}]}, "spec.models[0]", "anthropic or scripted"),
    ("usd-without-price", {"models": [real_model(price=False)], "agent": {"maxUSD": "2"}}, "spec.models[0]", "price"),
    ("price-of-script", {"models": [{"name": "m", "scripted": {"policy": "x"}, "price": PRICE}]}, "price", "nothing"),
    (
        "self-judge",
        {"models": [real_model()], "judge": {"anthropic": JUDGE}},
        "judge.anthropic.model",
        "allowSelfJudge",
    ),
    ("two-judges", {"judge": {"none": True, "anthropic": JUDGE}}, "spec.judge", "exclude"),
    ("no-threshold", {"gate": {"enforcement": "Enforce"}}, "spec.gate", "minimum or maxDrop"),
    ("few-replicates", {"replicates": 2}, "spec.replicates", "at least 3"),
    ("drop-from-nothing", {"gate": {"enforcement": "Enforce", "maxDrop": "0.05"}}, "gate.maxDrop", "baseline"),
    (
        "unknown-baseline",
        {"gate": {"enforcement": "Enforce", "maxDrop": "0.1", "baseline": {"server": "x"}}},
        "spec.gate.baseline.server",
        "current, candidate",
    ),
    (
        "lonely-baseline",
        {"gate": {"enforcement": "Enforce", "maxDrop": "0.1", "baseline": {"model": "newest"}}},
        "spec.gate.baseline.model",
        "only one",
    ),
    ("too-many-cells", {"replicates": 200, "scenarios": [{"name": f"s{i}"} for i in range(9)]}, "replicates", "3600"),
    ("adaptive-below", {"adaptive": {"maxReplicates": 2}}, "adaptive.maxReplicates", "below"),
    ("weights", {"weights": {"programmatic": "0.5", "judge": "0.6"}}, "spec.weights", "add up to 1"),
    ("command-runtime", {"agent": {"runtime": "Command"}}, "agent.command", "Command"),
    ("one-ref", {"scenarios": [{"name": "a", "answerRef": {"name": "x"}}]}, "spec.scenarios[0]", "belong together"),
    ("huge", {"replicates": 10**15}, "spec.replicates", "less than or equal"),
]


@pytest.mark.parametrize(("spec", "field", "word"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_each_mistake_is_named_with_its_line_field_and_fix(spec: dict[str, Any], field: str, word: str) -> None:
    """M-D4, bad input: unknown fields, wrong types, duplicate names, limits without a price, gates that can't hold."""
    told = _problems(manifest(**spec))
    assert field in told
    assert word in told
    for line in told.splitlines():
        assert re.match(r"suite\.yaml:\d+: \S", line)
        assert " — " in line


def test_all_problems_are_told_at_once() -> None:
    """M-D4: one round of mending, not one per mistake."""
    told = _problems(manifest(replicates=1, anchor=None, gate={"enforcement": "Enforce", "maxDrop": "0.05"}))
    assert len(told.splitlines()) == 3


def test_the_line_is_the_fields_own() -> None:
    """Manifest: file, line, field and fix."""
    lines = text(manifest(parallelism="four")).splitlines()
    expected = next(number for number, line in enumerate(lines, start=1) if "parallelism" in line)
    assert f"suite.yaml:{expected}: spec.parallelism" in _problems(manifest(parallelism="four"))


def test_a_key_in_the_wrong_place_is_not_repeated() -> None:
    """Manifest: secrets only by reference, never printed."""
    model = {"name": "m", "anthropic": {"model": "claude-x", "secretKeyRef": "sk-ant-made-up"}}
    assert "sk-ant" not in _problems(manifest(models=[model]))
    odd = server(env=[{"name": "TOKEN", "value": 123456789}])
    assert "123456789" not in _problems(manifest(servers=[odd, server("b")]))


def test_a_large_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    """Bad input: a 10 MB manifest."""
    path = tmp_path / "suite.yaml"
    with path.open("wb") as file:
        file.truncate(10_000_000)
    with pytest.raises(InvalidManifest, match="10,000,000 bytes"):
        load_suite(path)


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    """Bad input: no file, a folder, other bytes, a list."""
    path = tmp_path / "suite.yaml"
    with pytest.raises(InvalidManifest, match="proctor init"):
        load_suite(path)
    with pytest.raises(InvalidManifest, match=f"^{tmp_path}: can't be read"):
        load_suite(tmp_path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidManifest, match="UTF-8"):
        load_suite(path)
    path.write_text("- a\n")
    with pytest.raises(InvalidManifest, match="mapping"):
        load_suite(path)


def test_an_unknown_scenario_gets_a_suggestion(tmp_path: Path) -> None:
    """Bad input: unknown scenario; --scenarios DIR adds one's own."""
    (tmp_path / "error-root-cause").mkdir()
    (tmp_path / "error-root-cause" / "brief.yaml").touch()
    assert parse_suite(text(manifest()), file="s", scenario_dirs=[tmp_path])
    with pytest.raises(InvalidManifest, match=r"spec\.scenarios\[0\]\.name.*did you mean error-root-cause\?"):
        parse_suite(text(manifest(scenarios=[{"name": "error-rot-cause"}])), file="s", scenario_dirs=[tmp_path])


def test_a_policy_that_a_scenario_lacks_is_named(tmp_path: Path) -> None:
    """Bad input: a misspelt policy is found before anything runs; those that every scenario has need no file."""
    folder = tmp_path / "error-root-cause"
    folder.mkdir()
    (folder / "brief.yaml").touch()
    scripted = [{"name": name, "scripted": {"policy": name}} for name in ("loudest", "no-such")]
    assert parse_suite(text(manifest(models=scripted[:1])), file="s", scenario_dirs=[tmp_path])
    with pytest.raises(InvalidManifest, match=r"models\[1\]\.scripted\.policy: .*no policy 'no-such' — one of oracle"):
        parse_suite(text(manifest(models=scripted)), file="s", scenario_dirs=[tmp_path])
    (folder / "policies.yaml").write_text("surprise: 1\n")
    with pytest.raises(InvalidManifest, match=r"models\[1\]\.scripted\.policy: .*policies\.yaml.*scenario check"):
        parse_suite(text(manifest(models=scripted)), file="s", scenario_dirs=[tmp_path])


def test_a_suite_survives_writing_and_reading() -> None:
    """Manifest: the frozen suite is the suite, decimals to the digit."""
    suite = EvalSuite.model_validate(manifest(models=[real_model()], agent={"maxUSD": "0.10"}))
    written = suite.to_file()
    assert written["spec"]["scenarios"][0]["volume"] == "0.02"
    assert written["spec"]["agent"]["maxUSD"] == "0.10"
    assert EvalSuite.model_validate(written) == suite
    assert parse_suite(text(written), file="s") == suite


def test_the_digest_is_of_the_meaning() -> None:
    """Manifest: a suite with the same digest resumes; what only starts runs does not count."""
    plain = parse_suite(text(manifest()), file="s").spec
    spelled_out = parse_suite(
        text(manifest(parallelism=4, agent={"maxTurns": 25}, schedule="0 3 * * *")), file="s"
    ).spec
    assert digest_suite(plain) == digest_suite(spelled_out)
    assert digest_suite(plain) != digest_suite(parse_suite(text(manifest(replicates=4)), file="s").spec)
