"""A grader in a pod: what is mounted, and what the datasets say, becomes its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from proctor.adapters.clickhouse.datasets import compute_facts
from proctor.adapters.clickhouse.endpoint import Endpoint, render_login
from proctor.adapters.clickhouse.results import ResultsStore
from proctor.adapters.clickhouse.session import HttpSession
from proctor.bootstrap.grade import GraderConfig, ScenarioSource, StoreLogin
from proctor.bootstrap.mounted import Mount, state_dir
from proctor.core.scenarios.answer import load_answer
from proctor.errors import InvalidInput

FACT_SECONDS = 30
"""As long as a dataset's restricted user may ask at all."""


async def read_grader_config(root: Path) -> GraderConfig:
    """Return the configuration of the grader whose pod this is.

    Facts are asked of each dataset anew, as its restricted user: so they fit the answer key that is mounted.

    Raises:
        InvalidInput: a file is missing or wrong, or a fact query is at fault.
        Retryable: a dataset does not answer.
        Terminal: it refuses.
    """
    mount = Mount(root)
    judge = mount.suite.judge.anthropic
    secrets = mount.secrets([judge.secret_key_ref] if judge is not None else [])
    scenarios = {
        ref.name: ScenarioSource(
            directory=folder,
            facts=await _ask_facts(folder, ref.seed, mount.dataset(ref.name)),
            dataset=StoreLogin.model_validate(render_login(mount.dataset(ref.name))),
        )
        for ref, folder in mount.scenario_dirs()
    }
    return GraderConfig(
        run=mount.children.run,
        suite=mount.suite,
        store=StoreLogin.model_validate(render_login(mount.store())),
        scenarios=scenarios,
        secrets={name: SecretStr(value) for name, value in secrets.items()},
        allowed_hosts=mount.children.allowed_hosts,
        summary=state_dir() / "summary.json",
    )


async def prepare_store(root: Path) -> None:
    """Bring the results store to this version's schema; does nothing where it is there already.

    Raises:
        InvalidInput: the login is missing.
        Retryable: the store does not answer.
        Terminal: it refuses.
    """
    endpoint = Mount(root).store()
    store = ResultsStore(endpoint, endpoint.database)
    try:
        await store.migrate()
    finally:
        await store.close()


async def _ask_facts(folder: Path, seed: int, dataset: Endpoint) -> dict[str, Any]:
    queries = load_answer(folder, seed).facts
    try:
        return dict(await compute_facts(HttpSession(dataset), queries, dataset.database, seconds=FACT_SECONDS))
    except InvalidInput as error:
        raise InvalidInput(f"scenario {folder.name}: {error}") from error
