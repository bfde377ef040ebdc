"""What an agent can do to ClickHouse: read its one database, and nothing else (S19)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path

import pytest
import pytest_asyncio

import proctor
from proctor.adapters.clickhouse.endpoint import Endpoint
from proctor.local.engine import Access, Engine
from support.engines import SMALL, ask

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

DENIED = 497
SETTING_OUT_OF_RANGE = 452
NOT_ALLOWED, PROHIBITED = 446, 392
NOT_GRANTED_OR_NOT_THERE = {DENIED, 60, 81}  # a table that can't be seen may look like one that doesn't exist


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    root = tmp_path_factory.mktemp("agent")
    async with Engine.start(root / "data", access=Access("ds_1"), log=root / "engine.log", limits=SMALL) as engine:
        (engine.path / "probe.txt").write_text("probe")
        for database in ("ds_1", "secret"):
            assert ask(engine.endpoint, f"CREATE DATABASE {database}").ok
            assert ask(engine.endpoint, f"CREATE TABLE {database}.t (n UInt64) ENGINE = MergeTree ORDER BY n").ok
            assert ask(engine.endpoint, f"INSERT INTO {database}.t SELECT * FROM numbers(10)").ok  # noqa: S608 - constants
        yield engine


def agent_of(engine: Engine) -> Endpoint:
    assert engine.agent_endpoint
    return engine.agent_endpoint


class Control(Enum):
    """What happens when the administrator sends the same."""

    WORKS = auto()
    NOT_DENIED = auto()  # it fails for another reason than a missing grant
    NONE = auto()  # it would wait for a network that the kernel closes, or spoil this engine for the other tests


@dataclass(frozen=True)
class Attack:
    """Something that the agent must not be able to do.

    Attributes:
        sql: the statement; `{http}` and `{tcp}` are the engine's own ports, which answer, and `{data}` its folder.
        settings: sent in the URL.
        codes: of the refusals that are right.
        control: the positive control.
    """

    sql: str
    settings: dict[str, str | int] = field(default_factory=dict)
    codes: frozenset[int] = frozenset({DENIED})
    control: Control = Control.WORKS


ATTACKS = {
    "url": Attack("SELECT * FROM url('http://127.0.0.1:{http}/ping', 'LineAsString')", control=Control.NONE),
    "describe-url": Attack("DESCRIBE TABLE url('http://127.0.0.1:{http}/ping', 'LineAsString')"),
    "infer-url": Attack("DESCRIBE TABLE url('http://127.0.0.1:{http}/?query=SELECT+1', 'CSV')", control=Control.NONE),
    "file-table": Attack("SELECT * FROM file('{data}/probe.txt', 'LineAsString')"),
    "describe-file": Attack("DESCRIBE TABLE file('{data}/probe.txt', 'CSV')"),
    "remote": Attack("SELECT * FROM remote('127.0.0.1:{tcp}', 'system', 'one', 'default', '')", control=Control.NONE),
    "remote-secure": Attack("SELECT * FROM remoteSecure('127.0.0.1:{tcp}', secret, t)", control=Control.NONE),
    "s3": Attack("SELECT * FROM s3('http://127.0.0.1:{http}/bucket/x.csv')", control=Control.NONE),
    "mysql": Attack("SELECT * FROM mysql('127.0.0.1:{http}', 'd', 't', 'u', 'p')", control=Control.NONE),
    "postgresql": Attack("SELECT * FROM postgresql('127.0.0.1:{http}', 'd', 't', 'u', 'p')", control=Control.NONE),
    "executable": Attack("SELECT * FROM executable('id', 'TSV', 'x String')", control=Control.NOT_DENIED),
    "python": Attack("SELECT * FROM python('x')", codes=frozenset({NOT_ALLOWED}), control=Control.NONE),
    "describe-python": Attack("DESCRIBE TABLE python(os)", codes=frozenset({NOT_ALLOWED}), control=Control.NONE),
    "python-allowed": Attack(
        "SELECT * FROM python('x') SETTINGS allow_python_table_function = 1",
        codes=frozenset({PROHIBITED, SETTING_OUT_OF_RANGE}),
        control=Control.NONE,
    ),
    "python-other-profile": Attack(
        "SELECT * FROM python('x')",
        {"profile": "default"},
        codes=frozenset({NOT_ALLOWED, PROHIBITED, SETTING_OUT_OF_RANGE}),
        control=Control.NONE,
    ),
    "eval": Attack(
        "SELECT * FROM eval('SELECT 1')",
        {"allow_experimental_eval_table_function": 1},
        frozenset({SETTING_OUT_OF_RANGE}),
    ),
    "sqlite": Attack(
        "SELECT * FROM sqlite('{data}/probe.txt', 't')", codes=frozenset({DENIED, 481}), control=Control.NONE
    ),
    "index-of-another": Attack(
        "SELECT * FROM mergeTreeIndex('secret', 't')", codes=frozenset(NOT_GRANTED_OR_NOT_THERE)
    ),
    "filter-that-looks-elsewhere": Attack(
        "SELECT * FROM ds_1.t SETTINGS additional_table_filters = {'ds_1.t': 'n IN (SELECT n FROM secret.t)'}",
        codes=frozenset(NOT_GRANTED_OR_NOT_THERE),
    ),
    "somebody-else": Attack("EXECUTE AS admin SELECT 1", codes=frozenset({DENIED, 344}), control=Control.NONE),
    "into-outfile": Attack("SELECT 1 INTO OUTFILE '{data}/x'", codes=frozenset({358}), control=Control.NONE),
    "merge-function": Attack(
        "SELECT * FROM merge('secret', '.*')", codes=frozenset({DENIED, 36, 43, 53, 117, 48, 344, 636, 674})
    ),
    "other-database": Attack("SELECT * FROM secret.t", codes=frozenset(NOT_GRANTED_OR_NOT_THERE)),
    "other-definition": Attack("SHOW CREATE TABLE secret.t", codes=frozenset(NOT_GRANTED_OR_NOT_THERE)),
    "other-description": Attack("DESCRIBE TABLE secret.t", codes=frozenset(NOT_GRANTED_OR_NOT_THERE)),
    "processes": Attack("SELECT * FROM system.processes"),
    "processlist": Attack("SHOW PROCESSLIST"),
    "query-log": Attack(
        "SELECT * FROM system.query_log", codes=frozenset(NOT_GRANTED_OR_NOT_THERE), control=Control.NOT_DENIED
    ),
    "query-cache": Attack("SELECT * FROM system.query_cache"),
    "parts": Attack("SELECT * FROM system.parts"),
    "users": Attack("SELECT * FROM system.users"),
    "grants": Attack("SELECT * FROM system.grants"),
    "disks": Attack("SELECT * FROM system.disks"),
    "server-settings": Attack("SELECT * FROM system.server_settings"),
    "metrics": Attack("SELECT * FROM system.metrics"),
    "errors": Attack("SELECT * FROM system.errors"),
    "clusters": Attack("SELECT * FROM system.clusters"),
    "stack-trace": Attack("SELECT * FROM system.stack_trace LIMIT 1", control=Control.NONE),
    "insert": Attack("INSERT INTO ds_1.t SELECT 1 WHERE 0"),
    "insert-file": Attack("INSERT INTO FUNCTION file('{data}/{name}.csv', 'CSV', 'x UInt8') SELECT 1"),
    "insert-url": Attack(
        "INSERT INTO FUNCTION url('http://127.0.0.1:{http}/', 'CSV', 'x UInt8') SELECT 1", control=Control.NONE
    ),
    "create-table": Attack("CREATE TABLE ds_1.{name} (n UInt8) ENGINE = Memory"),
    "create-temporary": Attack("CREATE TEMPORARY TABLE {name} (n UInt8)", {"session_id": "s-{user}"}),
    "create-view": Attack("CREATE VIEW ds_1.{name} AS SELECT 1"),
    "create-database": Attack("CREATE DATABASE {name}"),
    "create-function": Attack("CREATE FUNCTION {name} AS (x) -> x"),
    "create-user": Attack("CREATE USER {name}", control=Control.NOT_DENIED),
    "grant": Attack("GRANT SELECT ON secret.* TO agent", control=Control.NONE),
    "alter": Attack("ALTER TABLE ds_1.t ADD COLUMN {name} UInt8"),
    "delete": Attack("DELETE FROM ds_1.t WHERE n = 99"),
    "optimize": Attack("OPTIMIZE TABLE ds_1.t"),
    "truncate": Attack("TRUNCATE TABLE secret.t"),
    "drop": Attack("DROP TABLE ds_1.t", control=Control.NONE),
    "rename": Attack("RENAME TABLE ds_1.t TO ds_1.u", control=Control.NONE),
    "kill": Attack("KILL QUERY WHERE 0", codes=frozenset({DENIED})),
    "stop-merges": Attack("SYSTEM STOP MERGES ds_1.t"),
    "flush-logs": Attack("SYSTEM FLUSH LOGS", control=Control.NOT_DENIED),
    "shutdown": Attack("SYSTEM SHUTDOWN", control=Control.NONE),
    "stop-listen": Attack("SYSTEM STOP LISTEN HTTP", control=Control.NONE),
    "backup": Attack("BACKUP TABLE ds_1.t TO File('{data}/b')", control=Control.NOT_DENIED),
    "cluster": Attack(
        "SELECT * FROM cluster('default', secret, t)", codes=frozenset({DENIED, 701}), control=Control.NONE
    ),
    "longer": Attack("SELECT 1", {"max_execution_time": 31}, frozenset({SETTING_OUT_OF_RANGE})),
    "for-ever": Attack("SELECT 1", {"max_execution_time": 0}, frozenset({SETTING_OUT_OF_RANGE})),
    "for-ever-inside": Attack("SELECT 1 SETTINGS max_execution_time = 0", {}, frozenset({SETTING_OUT_OF_RANGE})),
    "more-memory": Attack("SELECT 1", {"max_memory_usage": 4_000_000_001}, frozenset({SETTING_OUT_OF_RANGE})),
    "all-memory": Attack("SELECT 1", {"max_memory_usage": 0}, frozenset({SETTING_OUT_OF_RANGE})),
    "more-threads": Attack("SELECT 1", {"max_threads": 5}, frozenset({SETTING_OUT_OF_RANGE})),
    "more-rows": Attack("SELECT 1", {"max_result_rows": 0}, frozenset({SETTING_OUT_OF_RANGE})),
    "more-bytes": Attack("SELECT 1", {"max_result_bytes": 0}, frozenset({SETTING_OUT_OF_RANGE})),
    "more-for-user": Attack("SELECT 1", {"max_memory_usage_for_user": 0}, frozenset({SETTING_OUT_OF_RANGE})),
    "other-profile": Attack(
        "SELECT 1", {"profile": "default", "max_execution_time": 0}, frozenset({SETTING_OUT_OF_RANGE})
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_is_refused(engine: Engine, name: str) -> None:
    """S19: refused to the agent; the same statement is not refused to the administrator."""
    attack = ATTACKS[name]
    places = {
        "http": str(engine.endpoint.port),
        "tcp": str(engine.tcp_port),
        "data": str(engine.path),
        "name": "made_" + name.replace("-", "_"),
    }

    def fill(text: str, **more: str) -> str:
        for word, value in {**places, **more}.items():
            text = text.replace("{" + word + "}", value)
        return text

    def attempt(endpoint: Endpoint) -> tuple[int, str]:
        settings = {
            key: fill(value, user=endpoint.user) if isinstance(value, str) else value
            for key, value in attack.settings.items()
        }
        answer = ask(endpoint, fill(attack.sql), **settings)
        assert answer.ok == (answer.code == 0)
        return answer.code, answer.text

    code, text = attempt(agent_of(engine))
    assert code in attack.codes, text
    if attack.control is not Control.NONE:
        code, text = attempt(engine.endpoint)
        assert code == 0 if attack.control is Control.WORKS else code != DENIED, text


def exists(path: str) -> bool:
    return Path(path).exists()


READ_BY_NOBODY = (
    "/etc/hostname",
    "/proc/self/environ",
    "/proc/self/cmdline",
    "/proc/1/environ",
    "{data}/../data.serving/engine.json",
    "{data}/../data.serving/lock",
    "{data}/../engine.log",
    "{data}/../other/answer.yaml",
    "{package}/errors.py",
)


@pytest.mark.parametrize("path", READ_BY_NOBODY)
async def test_no_file_of_the_machine_can_be_read(engine: Engine, path: str) -> None:
    """S19, S20: the SQL function `file` asks for no grant, so the kernel keeps the engine to its own folder."""
    other = engine.path.parent / "other"
    other.mkdir(exist_ok=True)
    (other / "answer.yaml").write_text("the pool of the payment service")
    place = path.replace("{data}", str(engine.path)).replace("{package}", str(Path(proctor.__file__).parent))
    assert exists(place)
    assert ask(agent_of(engine), f"SELECT file('{engine.path}/probe.txt')").text == "probe\n"
    for endpoint in (agent_of(engine), engine.endpoint):
        answer = ask(endpoint, f"SELECT file('{place}')")
        assert not answer.ok
        assert "Permission denied" in answer.text


async def test_the_engine_connects_to_nothing(engine: Engine) -> None:
    """S19: even a statement that is granted reaches no network, because the kernel refuses."""
    answer = ask(engine.endpoint, f"SELECT * FROM remote('127.0.0.1:{engine.tcp_port}', system.one)")  # noqa: S608
    assert not answer.ok
    assert "Permission denied" in answer.text


async def test_only_its_own_database_is_to_be_seen(engine: Engine) -> None:
    """S19, S20: names of other databases, tables and columns are hidden, while its own are there."""
    agent = agent_of(engine)
    assert ask(agent, "SELECT count() FROM ds_1.t").text == "10\n"
    assert ask(agent, "SELECT DISTINCT database FROM system.tables WHERE engine LIKE '%MergeTree'").text == "ds_1\n"
    for query in (
        "SHOW DATABASES",
        "SELECT name FROM system.databases",
        "SELECT database || '.' || table FROM system.columns",
        "SHOW TABLES FROM ds_1",
        "SHOW CREATE TABLE ds_1.t",
    ):
        answer = ask(agent, query)
        assert answer.ok, answer.text
        assert "secret" not in answer.text
    assert "secret" in ask(engine.endpoint, "SHOW DATABASES").text


async def test_what_servers_ask_for_by_default_is_granted(engine: Engine) -> None:
    """S19: the bounds admit what servers under test send themselves, `readonly` included."""
    agent = agent_of(engine)
    settings: dict[str, str | int] = {
        "readonly": 1,
        "max_execution_time": 30,
        "max_memory_usage": 4_000_000_000,
        "max_threads": 4,
        "max_result_rows": 1000,
    }
    assert ask(agent, "SELECT count() FROM t", **settings).text == "10\n"
    assert ask(agent, "SELECT count() FROM t SETTINGS max_threads = 1").text == "10\n"
    assert ask(agent, "SELECT getSetting('max_execution_time')").text == "30\n"


async def test_a_query_without_end_ends(engine: Engine) -> None:
    """S19: its time, its rows and its memory are bounded, and it is told so."""
    agent = agent_of(engine)
    assert ask(agent, "SELECT sum(number) FROM numbers(1e15)", max_execution_time=1).code == 159
    assert ask(agent, "SELECT number FROM numbers(2000)", max_result_rows=1000, wait_end_of_query=1).code == 396
    assert ask(agent, "SELECT groupArray(number) FROM numbers(1e10)", max_memory_usage=10_000_000).code == 241


async def test_the_user_that_can_not_be_removed_can_do_nothing(engine: Engine) -> None:
    """S19: the engine's built-in user may not read, write, look or end anything."""
    nobody = replace(engine.endpoint, user="default", password="", database="default")
    for sql in (
        "SELECT * FROM ds_1.t",
        "SELECT * FROM system.processes",
        "SELECT * FROM file('/etc/hostname', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "CREATE TABLE x (n UInt8) ENGINE = Memory",
        "SYSTEM SHUTDOWN",
    ):
        assert ask(nobody, sql).code in NOT_GRANTED_OR_NOT_THERE, sql
    assert ask(engine.endpoint, "SELECT 1").ok


async def test_a_wrong_password_opens_nothing(engine: Engine) -> None:
    """S19: neither user is open, and the two passwords differ."""
    agent = agent_of(engine)
    assert agent.password != engine.endpoint.password
    assert ask(replace(agent, password=""), "SELECT 1").code == 516
    assert ask(replace(engine.endpoint, password=agent.password), "SELECT 1").code == 516
