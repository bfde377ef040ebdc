"""A dataset over several servers: rows lie in a database on each, and are read through another that spans them all."""

from __future__ import annotations

from proctor.core.seeding.sql import name_table, quote

LOCAL_SUFFIX = "_local"


def local_database(database: str) -> str:
    """Return the name of the database that holds one shard's rows."""
    return f"{database}{LOCAL_SUFFIX}"


def create_distributed(database: str, table: str, cluster: str) -> str:
    """Return the statement that makes a table readable over all shards; it takes no rows itself.

    Args:
        database: what readers see.
        table: the table, of the same name on each shard.
        cluster: what the servers call themselves in `remote_servers`.
    """
    local = local_database(database)
    engine = f"Distributed({quote(cluster)}, {quote(local)}, {quote(table)})"
    return f"CREATE TABLE {name_table(database, table)} AS {name_table(local, table)} ENGINE = {engine}"
