"""A run as its pods find it: a folder of mounted ConfigMaps and Secrets.

    suite/suite.json  children/children.json  keys/<name>  clickhouse/{user,password}  secrets/<name>/<key>
    scenarios/<name>/{brief,recipe,variants,answer,policies}.yaml  of scenarios not shipped; each pod gets its own part

Whoever may write into the namespace may write these, so every file is bounded and read by a closed schema.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.api.fields import SecretKeyRef
from proctor.api.suite import EvalSuiteSpec, ScenarioRef
from proctor.bootstrap.children_file import (
    CHILDREN_FILE,
    MAX_CHILDREN_BYTES,
    ChildrenFile,
    DatasetPlace,
    parse_children,
)
from proctor.core.scenarios.folder import find_scenario
from proctor.errors import InvalidInput
from proctor.settings import shipped_scenarios_dir

STATE_DIR_VARIABLE = "PROCTOR_STATE_DIR"
_STATE_DIR = Path("/var/run/proctor")

_MAX_SUITE_BYTES = 1024 * 1024
_MAX_SECRET_BYTES = 64 * 1024


def state_dir() -> Path:
    """Return the one folder that a pod may write to."""
    return Path(os.environ.get(STATE_DIR_VARIABLE) or _STATE_DIR)


@dataclass(frozen=True)
class Mount:
    """The mounted folder.

    Attributes:
        root: where it is.
    """

    root: Path

    @cached_property
    def suite(self) -> EvalSuiteSpec:
        """The frozen suite.

        Raises:
            InvalidInput: it is missing, or is none.
        """
        path = self.root / "suite" / "suite.json"
        try:
            return EvalSuiteSpec.model_validate_json(_read(path, _MAX_SUITE_BYTES))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            raise InvalidInput(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    @cached_property
    def children(self) -> ChildrenFile:
        """What is known of the run's other children.

        Raises:
            InvalidInput: it is missing, or is none.
        """
        return parse_children(_read(self.root / "children" / CHILDREN_FILE, MAX_CHILDREN_BYTES))

    def key(self, name: str) -> str:
        """Return one of the run's own keys.

        Raises:
            InvalidInput: it is missing.
        """
        return _read_secret(self.root / "keys" / name)

    def store(self) -> Endpoint:
        """Return the results store.

        Raises:
            InvalidInput: the login is missing.
        """
        place = self.children.store
        return self.clickhouse(place.host, place.port, database=place.database, secure=place.secure)

    def clickhouse(self, host: str, port: int, *, database: str = "default", secure: bool = False) -> Endpoint:
        """Return a ClickHouse as the user that the namespace's Secret names.

        Raises:
            InvalidInput: the login is missing.
        """
        login = self.root / "clickhouse"
        user, password = _read_secret(login / "user"), _read_secret(login / "password")
        return Endpoint(host, port, user, password, database, secure)

    def dataset(self, scenario: str) -> Endpoint:
        """Return where a scenario's dataset is served, as its restricted user.

        Raises:
            InvalidInput: it is not known yet, or its password is missing.
        """
        place = self._dataset(scenario)
        return Endpoint(
            place.host, place.port, place.user, self.key("datasetPassword"), place.database, secure=place.secure
        )

    def secrets(self, refs: Iterable[SecretKeyRef]) -> dict[str, str]:
        """Return the values of Secrets, by ``name/key``.

        Raises:
            InvalidInput: one is missing; never repeats a value.
        """
        return {f"{ref.name}/{ref.key}": _read_secret(self._secret_path(ref)) for ref in refs}

    def has_secret(self, ref: SecretKeyRef) -> bool:
        """Tell whether a Secret is mounted here."""
        return self._secret_path(ref).is_file()

    def scenario_dir(self, ref: ScenarioRef) -> Path:
        """Return a scenario's folder: the shipped one, or what is mounted of the namespace's own.

        Raises:
            InvalidInput: there is none.
        """
        if ref.config_map_ref is None:
            return find_scenario(shipped_scenarios_dir(), ref.name)
        folder = self.root / "scenarios" / ref.name
        if not folder.is_dir():
            raise InvalidInput(f"scenario {ref.name}: {folder} is not mounted")
        return folder

    def scenario_dirs(self) -> Iterator[tuple[ScenarioRef, Path]]:
        """Yield every scenario of the suite and its folder.

        Raises:
            InvalidInput: one has none.
        """
        for ref in self.suite.scenarios:
            yield ref, self.scenario_dir(ref)

    def _dataset(self, scenario: str) -> DatasetPlace:
        place = self.children.datasets.get(scenario)
        if place is None:
            raise InvalidInput(f"{CHILDREN_FILE}: datasets: {scenario} is missing: it has not been seeded")
        return place

    def _secret_path(self, ref: SecretKeyRef) -> Path:
        return self.root / "secrets" / ref.name / ref.key


def _read_secret(path: Path) -> str:
    try:
        # Editors and `echo` end a file with a line break that no key has.
        value = _read(path, _MAX_SECRET_BYTES).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        # Without `from`: the decoder's exception carries the bytes.
        raise InvalidInput(f"{path}: not UTF-8 text") from None
    if not value:
        raise InvalidInput(f"{path}: it is empty")
    return value


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as stream:
            body = stream.read(limit + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
    if len(body) > limit:
        raise InvalidInput(f"{path}: larger than {limit} bytes")
    return body
