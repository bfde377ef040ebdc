"""A dataset's endpoint on its way from the run's programs to those that query it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.bootstrap.gateway_config import parse_gateway_config
from proctor.local.orders import render_login
from support.gateway import make_suite
from support.gateway_process import BRIEF, make_config


@pytest.mark.parametrize("secure", [False, True])
def test_a_datasets_login_keeps_its_tls(*, secure: bool) -> None:
    """M-D4: a ClickHouse behind https, given by URL, is a dataset's endpoint like any other."""
    login = render_login(Endpoint("clickhouse.example", 8443, "agent", "secret", "ds", secure))
    suite = make_suite().to_file()
    scenarios: dict[str, Any] = {"error-root-cause": {"brief": BRIEF, "dataset": login}}
    config = parse_gateway_config(json.dumps(make_config(suite, Path("/x"), scenarios=scenarios)).encode())
    dataset = config.scenarios["error-root-cause"].dataset
    assert (dataset.host, dataset.port, dataset.secure) == ("clickhouse.example", 8443, secure)
