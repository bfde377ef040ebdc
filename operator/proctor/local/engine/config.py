"""What an engine is told: who may connect, what they may do, and how much memory and how many threads they get.

Three users exist. One may do everything and is ours alone. One for agents, if asked for, may SELECT and SHOW on exactly
one database. The engine's built-in `default` must exist without a password, because the engine's own local session
starts the listener as it; it is left nothing else to do.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from proctor.adapters.clickhouse.restricted import AgentLimits

ADMIN = "admin"
AGENT = "agent"

_GIB = 1 << 30


_NO_MERGES = (
    "<merge_tree><max_bytes_to_merge_at_max_space_in_pool>0</max_bytes_to_merge_at_max_space_in_pool></merge_tree>"
)


_IDLE_THREADS = 4
"""Dozens stay otherwise, of each engine; a pod has room for some hundreds in all."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A user whom somebody else has named, and who therefore may come from wherever the engine listens.

    Attributes:
        name: of the user.
        password_digest: SHA-256 of the password, as hex.
        password: the password itself, where the engine's owner has to use it too.
    """

    name: str
    password_digest: str = field(repr=False)
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"user {self.name!r}: at most 64 ASCII letters, digits and underscores")

    @classmethod
    def with_password(cls, name: str, password: str) -> Known:
        """Return a user by its password."""
        return cls(name=name, password_digest=digest_password(password), password=password)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may connect, and where.

    Attributes:
        agent_database: the one database that the agent user may read; None for no agent user.
        must_confine: refuse to start where the kernel can't keep the engine from reading the machine's files, which any
            user of SQL could then do; False only where cells are not isolated either, and the report says so.
        agent: the agent user; None for one whose password is drawn, who comes from this machine alone.
        admin: the administrator; None as above.
        host: the address on which the engine listens.
        port: of HTTP; 0 lets the kernel choose, so that two engines can never want the same one.
    """

    agent_database: str | None = None
    must_confine: bool = True
    agent: Known | None = None
    admin: Known | None = None
    host: str = LOOPBACK
    port: int = 0

    def __post_init__(self) -> None:
        name = self.agent_database
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError(f"database {name!r}: only ASCII letters, digits and underscores can be granted")


ADMIN_ONLY = Access()
"""An engine that only its owner can query: seeding and results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """How much of the machine an engine may use.

    Attributes:
        memory_bytes: for the whole server; queries beyond it fail with a clear error instead of the kernel's kill.
        threads: per query.
        tcp: also speak the native protocol.
    """

    memory_bytes: int = 4 * _GIB
    threads: int = 4
    tcp: bool = False


def build_config_xml(
    limits: EngineLimits,
    *,
    users_path: str,
    error_log: str,
    host: str = LOOPBACK,
    http_port: int = 0,
    merges: bool = True,
) -> str:
    """Return the server's config.

    Args:
        limits: how much it may use.
        users_path: of the users file.
        error_log: where it writes its errors.
        host: the address on which it listens.
        http_port: 0 lets the kernel choose, so that two engines can never want the same one.
        merges: whether parts are merged in the background. One that serves a clone must not: a merged part is a copy,
            where the parts before were links to files that are there anyway, and rows of rollups would come together
            under the eyes of whoever queries them.
    """
    tcp = "<tcp_port>0</tcp_port>" if limits.tcp else ""
    merge_tree = "" if merges else _NO_MERGES
    return f"""<clickhouse>
<logger><level>error</level><errorlog_level>error</errorlog_level><errorlog>{escape(error_log)}</errorlog><size>1M</size><count>1</count></logger>
<listen_host>{escape(host)}</listen_host><http_port>{http_port}</http_port>{tcp}{merge_tree}
<users_config>{escape(users_path)}</users_config>
<access_control_improvements>
<select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
<select_from_information_schema_requires_grant>true</select_from_information_schema_requires_grant>
</access_control_improvements>
<max_server_memory_usage>{limits.memory_bytes}</max_server_memory_usage>
<mark_cache_size>{limits.memory_bytes // 16}</mark_cache_size>
<primary_index_cache_size>{limits.memory_bytes // 32}</primary_index_cache_size>
<uncompressed_cache_size>0</uncompressed_cache_size>
<keep_alive_timeout>60</keep_alive_timeout>
<max_concurrent_queries>100</max_concurrent_queries>
<max_thread_pool_free_size>{_IDLE_THREADS}</max_thread_pool_free_size>
</clickhouse>
"""


def build_users_xml(
    access: Access, limits: EngineLimits, *, admin_password: str, agent_password: str, agent: AgentLimits | None = None
) -> str:
    """Return the users file; passwords are in it only as digests."""
    agent_user = _agent_user(access, agent_password) if access.agent_database else ""
    owner = access.admin or Known.with_password(ADMIN, admin_password)
    return f"""<clickhouse>
<profiles>
<default><max_threads>{limits.threads}</max_threads><max_insert_threads>{limits.threads}</max_insert_threads></default>
<nobody><max_threads>1</max_threads><max_memory_usage>16000000</max_memory_usage>
<allow_python_table_function>0</allow_python_table_function>
<constraints><allow_python_table_function><const/></allow_python_table_function></constraints></nobody>
{_agent_profile(agent or AgentLimits())}
</profiles>
<users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>nobody</profile><quota>default</quota>
<grants><query>GRANT SYSTEM LISTEN ON *.*</query><query>GRANT SELECT ON system.numbers</query></grants></default>
<{owner.name}>{_digest(owner)}{_networks(access.admin)}<profile>default</profile>
<quota>default</quota><grants><query>GRANT ALL ON *.*</query></grants></{owner.name}>
{agent_user}
</users>
<quotas><default/></quotas>
</clickhouse>
"""


def digest_password(password: str) -> str:
    """Return what an engine keeps of a password."""
    return hashlib.sha256(password.encode()).hexdigest()


def _digest(user: Known) -> str:
    return f"<password_sha256_hex>{escape(user.password_digest)}</password_sha256_hex>"


def _networks(known: Known | None) -> str:
    return f"<networks><ip>{LOOPBACK if known is None else '::/0'}</ip></networks>"


def _agent_user(access: Access, password: str) -> str:
    user = access.agent or Known.with_password(AGENT, password)
    return (
        f"<{user.name}>{_digest(user)}{_networks(access.agent)}<profile>{AGENT}</profile>"
        f"<quota>default</quota><default_database>{access.agent_database}</default_database>"
        f"<grants><query>GRANT SELECT, SHOW ON `{access.agent_database}`.*</query></grants></{user.name}>"
    )


def _agent_profile(limits: AgentLimits) -> str:
    """No ``readonly``: servers send ``readonly=1`` themselves, which ``readonly=2`` in the profile would refuse.

    Each minimum is 1 because 0 means "no limit" and would pass a maximum.
    """
    values = "".join(f"<{name}>{value}</{name}>" for name, value in limits.bounds.items())
    ranges = "".join(f"<{name}><min>1</min><max>{value}</max></{name}>" for name, value in limits.bounds.items())
    fixed = {
        "max_memory_usage_for_user": limits.memory_bytes,
        "max_temporary_data_on_disk_size_for_user": limits.temporary_bytes,
        "max_concurrent_queries_for_user": 40,
        "timeout_before_checking_execution_speed": 0,
        # The embedded engine's own: whoever may send a query at all could end the whole engine with it.
        "allow_python_table_function": 0,
        "allow_experimental_eval_table_function": 0,
    }
    fixed_values = "".join(f"<{name}>{value}</{name}>" for name, value in fixed.items())
    # `break` would hand back a partial result as if it were whole.
    modes = {"timeout_overflow_mode": "throw", "result_overflow_mode": "throw"}
    mode_values = "".join(f"<{name}>{value}</{name}>" for name, value in modes.items())
    locked = "".join(f"<{name}><const/></{name}>" for name in fixed)
    return f"<{AGENT}>{values}{fixed_values}{mode_values}<constraints>{ranges}{locked}</constraints></{AGENT}>"
