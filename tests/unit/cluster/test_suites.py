"""Which Secrets a suite may name."""

from __future__ import annotations

import pytest

from proctor.cluster.suites import refuse_own_secrets
from proctor.reconcile.suites_freezing import SuiteRefused
from support.runs import make_suite


@pytest.mark.parametrize("name", ["proctor-clickhouse", "proctor-master", "proctor-web", "pr-0123456789-keys"])
def test_proctors_own_secrets_are_refused(name: str) -> None:
    """S17: a suite could else have the store's password sent to a server of its own."""
    env = [{"name": "TOKEN", "secretKeyRef": {"name": name, "key": "password"}}]
    suite = make_suite(servers=[{"name": "left", "stdio": {"command": ["left"]}, "deniedTools": [], "env": env}],
                       gate={"enforcement": "Audit", "minimum": "0.5"})  # fmt: skip
    with pytest.raises(SuiteRefused, match=name):
        refuse_own_secrets(suite, "proctor-clickhouse")


def test_ones_own_secrets_are_not() -> None:
    """S17: everything else is the tenant's to give."""
    refuse_own_secrets(make_suite(), "proctor-clickhouse")
