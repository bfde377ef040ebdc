-- Statements are separated by a semicolon and an empty line; table names are without a database.
-- A row may be written twice (a batch is repeated when its acknowledgement was lost); Replacing engines and FINAL make
-- it one. What is acknowledged is on disk: inserts are synced, because the spool forgets what was acknowledged.

CREATE TABLE IF NOT EXISTS events
(
    run String,
    scenario LowCardinality(String),
    server LowCardinality(String),
    model LowCardinality(String),
    replicate UInt32,
    attempt UInt16,
    seq UInt32,
    ts DateTime64(6, 'UTC'),
    kind LowCardinality(String),
    status LowCardinality(String),
    name LowCardinality(String),
    error_class LowCardinality(String),
    span_id String,
    trace_id String,
    latency_us UInt64,
    waited_us UInt64,
    retry UInt32,
    request_digest String,
    request_bytes UInt64,
    request_preview String CODEC(ZSTD(1)),
    result_digest String,
    result_bytes UInt64,
    result_preview String CODEC(ZSTD(1)),
    input_tokens UInt64,
    output_tokens UInt64,
    cache_read_tokens UInt64,
    cache_write_tokens UInt64,
    usd Nullable(Decimal(38, 18))
)
ENGINE = ReplacingMergeTree
ORDER BY (run, scenario, server, model, replicate, attempt, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS blobs
(
    digest String,
    size UInt64,
    body String CODEC(ZSTD(3)),
    version UInt64,
    written DateTime MATERIALIZED toDateTime(intDiv(version, 1000000), 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY digest
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS attempts
(
    run String,
    scenario LowCardinality(String),
    server LowCardinality(String),
    model LowCardinality(String),
    replicate UInt32,
    attempt UInt16,
    outcome LowCardinality(String),
    reason String,
    opened DateTime64(6, 'UTC'),
    ended DateTime64(6, 'UTC'),
    requests UInt32,
    turns UInt32,
    tool_calls UInt32,
    agent_tool_errors UInt32,
    server_tool_errors UInt32,
    infra_tool_errors UInt32,
    denied UInt32,
    input_tokens UInt64,
    output_tokens UInt64,
    usd Nullable(Decimal(38, 18)),
    waited_us UInt64,
    limit LowCardinality(String),
    answer_source LowCardinality(String),
    answer_digest String,
    tools_digest String,
    trajectory_digest String,
    events UInt32
)
ENGINE = ReplacingMergeTree
ORDER BY (run, scenario, server, model, replicate, attempt)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS grades
(
    run String,
    scenario LowCardinality(String),
    server LowCardinality(String),
    model LowCardinality(String),
    replicate UInt32,
    attempt UInt16,
    rubric_digest String,
    judge_model LowCardinality(String),
    judge_prompt_digest String,
    score Nullable(Decimal(38, 18)),
    payload String CODEC(ZSTD(3)),
    version UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (run, scenario, server, model, replicate, attempt, rubric_digest, judge_model, judge_prompt_digest)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS runs
(
    run String,
    name String,
    suite String,
    suite_digest String,
    created DateTime64(6, 'UTC'),
    verdict LowCardinality(String),
    payload String CODEC(ZSTD(3)),
    version UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY run
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
