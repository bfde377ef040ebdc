"""What a run's pods are told of one another: one JSON object in a ConfigMap, which the operator writes.

It holds addresses, names and digests, and no secret.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from proctor.api.fields import Instant
from proctor.core.digests import canonical_json
from proctor.errors import InvalidInput

CHILDREN_FILE = "children.json"
MAX_CHILDREN_BYTES = 512 * 1024

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.:\[\]-]{1,253}$")]
_Port = Annotated[StrictInt, Field(ge=1, le=65_535)]
_Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class StorePlace(_Section):
    """Where results are kept; user and password are in the run's namespace, in a Secret.

    Attributes:
        control_port: of the house that serves datasets; None where the ClickHouse is no house's.
    """

    host: _Host
    port: _Port
    database: _Identifier = "proctor"
    secure: bool = False
    control_port: _Port | None = None


class DatasetPlace(_Section):
    """Where a dataset is served, as its restricted user; also the last words of a seeding Job.

    Attributes:
        hash: the dataset's name.
        digest: of its rows.
    """

    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    digest: _Text
    database: _Identifier
    host: _Host
    port: _Port
    user: _Identifier
    secure: bool = False


class ToolboxPlace(_Section):
    """Where one server under test, or the hook that prepares it, listens for the cells of one scenario."""

    server: _Text
    scenario: _Text
    host: _Host
    port: _Port


class ChildrenFile(_Section):
    """All of a run's children, as far as they are known.

    Attributes:
        run: the EvalRun's uid.
        run_name: its name.
        anchor: the run's anchor time.
        store: the results store.
        datasets: by scenario.
        toolboxes: one per server and scenario, but for servers at a URL.
        hooks: where the gateway finds the program that prepares a server, one per server with `provision` and scenario.
        host_names: by which the gateway may be called.
        allowed_hosts: provider hosts that may get a key.
    """

    run: _Text
    run_name: _Text
    anchor: Instant
    store: StorePlace
    datasets: Annotated[dict[_Text, DatasetPlace], Field(max_length=32)] = Field(default_factory=dict)
    toolboxes: Annotated[tuple[ToolboxPlace, ...], Field(max_length=512)] = ()
    hooks: Annotated[tuple[ToolboxPlace, ...], Field(max_length=512)] = ()
    host_names: Annotated[tuple[_Host, ...], Field(max_length=64)] = ()
    allowed_hosts: Annotated[tuple[_Host, ...], Field(max_length=256)] = ()

    def render(self) -> str:
        """Return the ConfigMap's text; equal content, equal text."""
        return canonical_json(self.model_dump(mode="json", by_alias=True)).decode()


def parse_children(text: bytes | str) -> ChildrenFile:
    """Read the file.

    Raises:
        InvalidInput: it is not what an operator writes; the message names the field.
    """
    if len(text) > MAX_CHILDREN_BYTES:
        raise InvalidInput(f"{CHILDREN_FILE}: larger than {MAX_CHILDREN_BYTES} bytes")
    try:
        return ChildrenFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InvalidInput(f"{CHILDREN_FILE}: {field}: {first['msg']}") from None
