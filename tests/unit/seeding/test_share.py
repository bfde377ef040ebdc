"""Which part of a dataset a worker loads, as people write it."""

from __future__ import annotations

import pytest

from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.adapters.clickhouse.session import HttpSession
from proctor.adapters.clickhouse.shards import Shards
from proctor.core.seeding.share import Share
from proctor.errors import InvalidInput


def test_a_share_is_written_as_people_count() -> None:
    """Issue, Scale: --part 2/4 is the second of four."""
    assert Share.parse("2/4") == Share(1, 4)
    assert str(Share(1, 4)) == "2/4"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/257", "-1/4", "1/4/2", "a/b", "1/99999", "²/4"])
def test_what_is_no_share_is_refused(text: str) -> None:
    """Bad input: a part that does not exist."""
    with pytest.raises(InvalidInput, match="write"):
        Share.parse(text)


def test_servers_without_a_name_for_each_other_are_refused() -> None:
    """Bad input: several URLs and no --cluster."""
    session = HttpSession(Endpoint("127.0.0.1", 1, "default", ""))
    with pytest.raises(InvalidInput, match="--cluster"):
        Shards([session, session])
