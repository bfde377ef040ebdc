"""Every child of a run as a file that can be read and compared.

To write the files anew after a change that is meant: ``PROCTOR_GOLDEN=write pytest tests/unit/manifests``.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proctor.manifests.scope import KubeObject
from support.kube_objects import EVERYTHING, every_child, find_flaws, scope, suite_spec

GOLDEN = Path(__file__).parent / "golden"
SUITES = {"small": {}, "everything": EVERYTHING}
FILES = [
    (suite, part)
    for suite, fields in SUITES.items()
    for part, objects in every_child(scope(suite_spec(**fields))).items()
    if objects
]


def _render(objects: list[KubeObject]) -> str:
    yaml = YAML()
    yaml.width = 4096
    stream = io.StringIO()
    yaml.dump_all(objects, stream)
    return stream.getvalue()


@pytest.mark.parametrize(("suite", "part"), FILES)
def test_children_are_what_the_files_say(suite: str, part: str) -> None:
    """Operator: pure builders with golden files."""
    rendered = _render(every_child(scope(suite_spec(**SUITES[suite])))[part])
    file = GOLDEN / suite / f"{part}.yaml"
    if os.environ.get("PROCTOR_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rendered, "utf-8")
    assert file.read_text("utf-8") == rendered


@pytest.mark.parametrize("suite", SUITES)
def test_the_api_knows_every_field(suite: str) -> None:
    """Style 5.5: schema validation of every child against the API's own types."""
    objects = [item for items in every_child(scope(suite_spec(**SUITES[suite]))).values() for item in items]
    assert [flaw for item in objects for flaw in find_flaws(item, f"V1{item['kind']}", item["metadata"]["name"])] == []


def test_the_check_of_fields_finds_flaws() -> None:
    """The check above can fail: an unknown field, a wrong type, something that is no list."""
    pod = {"kind": "Pod", "spec": {"containers": [{"name": 1, "imagine": "x"}], "volumes": {}}}
    assert find_flaws(pod, "V1Pod") == [
        ".spec.containers[0].imagine: unknown",
        ".spec.containers[0].name: 1 is no str",
        ".spec.volumes: not a list",
    ]
