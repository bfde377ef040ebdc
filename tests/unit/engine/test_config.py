"""What an engine is told."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.errors import InvalidInput
from proctor.local.engine.config import ADMIN_ONLY, Access, EngineLimits, Known, build_config_xml, build_users_xml


def users(access: Access) -> ET.Element:
    text = build_users_xml(access, EngineLimits(), admin_password="admin-secret", agent_password="agent-secret")
    assert "secret" not in text
    return ET.fromstring(text)  # noqa: S314 - our own


def test_the_agent_is_granted_one_database_and_no_readonly() -> None:
    """S19: servers send readonly themselves, which a readonly profile would refuse."""
    root = users(Access("ds_1"))
    assert [grant.text for grant in root.findall("users/agent/grants/query")] == ["GRANT SELECT, SHOW ON `ds_1`.*"]
    assert not list(root.iter("readonly"))


def test_every_bound_excludes_no_limit() -> None:
    """S19: zero means "no limit" to ClickHouse, and would pass a maximum."""
    constraints = users(Access("ds_1")).find("profiles/agent/constraints")
    assert constraints is not None
    for bound in constraints:
        assert bound.find("const") is not None or bound.findtext("min") == "1", bound.tag


def test_without_an_agent_nobody_else_exists() -> None:
    """S19: an engine for seeding or results has one user who can do anything."""
    assert [user.tag for user in users(ADMIN_ONLY).findall("users/*")] == ["default", "admin"]


@pytest.mark.parametrize("name", ["", "a`b", "a.b", "a b", "ä"])
def test_a_database_that_could_widen_the_grant_is_refused(name: str) -> None:
    """S19: the name becomes part of a GRANT."""
    with pytest.raises(ValueError, match="can be granted"):
        Access(name)


def test_the_listener_is_on_loopback_only() -> None:
    """M-A5: nobody else on the network reaches an engine."""
    root = ET.fromstring(build_config_xml(EngineLimits(), users_path="/a&b/users.xml", error_log="/l"))  # noqa: S314 - our own
    assert [item.text for item in root.findall("listen_host")] == ["127.0.0.1"]
    assert root.findtext("users_config") == "/a&b/users.xml"
    assert root.find("tcp_port") is None


def test_an_endpoint_never_shows_its_password() -> None:
    """S17: not in repr, not in str, not in errors."""
    endpoint = Endpoint.parse("https://user:pa%2Fss@example.org/results")
    assert endpoint == Endpoint("example.org", 8443, "user", "pa/ss", "results", secure=True)
    assert "pa/ss" not in f"{endpoint!r} {endpoint}"
    for url in ("ftp://u:hidden@h", "http://u:hidden@", "http://u:hidden@h:port", "http://u:hidden@h/d?x=1"):
        with pytest.raises(InvalidInput) as caught:
            Endpoint.parse(url)
        assert "hidden" not in str(caught.value)


def test_an_engine_that_serves_a_clone_merges_nothing() -> None:
    """M-D4: merged parts would be copies of what is shared by links."""
    place = "merge_tree/max_bytes_to_merge_at_max_space_in_pool"
    served = ET.fromstring(build_config_xml(EngineLimits(), users_path="u", error_log="l", merges=False))  # noqa: S314 - our own
    assert served.findtext(place) == "0"
    assert ET.fromstring(build_config_xml(EngineLimits(), users_path="u", error_log="l")).find(place) is None  # noqa: S314 - our own


def test_who_is_named_from_outside_may_come_from_outside() -> None:
    """architecture, Datasets: in a pod, the dataset's user comes over the network; the engine's owner does not."""
    agent = Known.with_password("pr_0123456789_0", "a-secret-of-the-run")
    root = users(Access("ds_1", agent=agent, host="0.0.0.0", port=8200))  # noqa: S104 - a pod's own
    assert {user.tag: user.findtext("networks/ip") for user in root.findall("users/*")} == {
        "default": "127.0.0.1",
        "admin": "127.0.0.1",
        "pr_0123456789_0": "::/0",
    }
    assert root.findtext("users/pr_0123456789_0/password_sha256_hex") == agent.password_digest


@pytest.mark.parametrize("name", ["", "a b", "a<b", "ä", "x" * 65])
def test_a_user_whose_name_could_be_markup_is_refused(name: str) -> None:
    """S29: the name becomes an element of the users file."""
    with pytest.raises(ValueError, match="user"):
        Known.with_password(name, "secret")
