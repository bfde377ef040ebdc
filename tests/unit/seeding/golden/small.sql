CREATE DATABASE `ds_0123456789abcdef_1`;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_logs`
(
    `Timestamp` DateTime64(9) CODEC(Delta(8), ZSTD(1)),
    `TraceId` String CODEC(ZSTD(1)),
    `SpanId` String CODEC(ZSTD(1)),
    `TraceFlags` UInt8,
    `SeverityText` LowCardinality(String) CODEC(ZSTD(1)),
    `SeverityNumber` UInt8,
    `ServiceName` LowCardinality(String) CODEC(ZSTD(1)),
    `Body` String CODEC(ZSTD(1)),
    `ResourceSchemaUrl` LowCardinality(String) CODEC(ZSTD(1)),
    `ResourceAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `ScopeSchemaUrl` LowCardinality(String) CODEC(ZSTD(1)),
    `ScopeName` String CODEC(ZSTD(1)),
    `ScopeVersion` LowCardinality(String) CODEC(ZSTD(1)),
    `ScopeAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `LogAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `EventName` String CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.cluster.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.cluster.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.container.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.container.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.deployment.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.deployment.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.namespace.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.namespace.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.node.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.node.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.pod.name` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.pod.name'] CODEC(ZSTD(1)),
    `__hdx_materialized_k8s.pod.uid` LowCardinality(String) MATERIALIZED ResourceAttributes['k8s.pod.uid'] CODEC(ZSTD(1)),
    `__hdx_materialized_deployment.environment.name` LowCardinality(String) MATERIALIZED ResourceAttributes['deployment.environment.name'] CODEC(ZSTD(1)),
    `ResourceAttributeItems` Array(String) ALIAS arrayMap((k, v) -> concat(k, '=', v), mapKeys(ResourceAttributes), mapValues(ResourceAttributes)),
    `ScopeAttributeItems` Array(String) ALIAS arrayMap((k, v) -> concat(k, '=', v), mapKeys(ScopeAttributes), mapValues(ScopeAttributes)),
    `LogAttributeItems` Array(String) ALIAS arrayMap((k, v) -> concat(k, '=', v), mapKeys(LogAttributes), mapValues(LogAttributes)),
    INDEX idx_trace_id TraceId TYPE text(tokenizer = 'array'),
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE text(tokenizer = 'array'),
    INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
    INDEX idx_scope_attr_key mapKeys(ScopeAttributes) TYPE text(tokenizer = 'array'),
    INDEX idx_scope_attr_items ScopeAttributeItems TYPE text(tokenizer = 'array'),
    INDEX idx_log_attr_key mapKeys(LogAttributes) TYPE text(tokenizer = 'array'),
    INDEX idx_log_attr_items LogAttributeItems TYPE text(tokenizer = 'array'),
    INDEX idx_lower_body lower(Body) TYPE text(tokenizer = 'splitByNonAlpha')
)
ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, enable_block_number_column = 1, enable_block_offset_column = 1;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_traces`
(
    `Timestamp` DateTime64(9) CODEC(Delta(8), ZSTD(1)),
    `TraceId` String CODEC(ZSTD(1)),
    `SpanId` String CODEC(ZSTD(1)),
    `ParentSpanId` String CODEC(ZSTD(1)),
    `TraceState` String CODEC(ZSTD(1)),
    `SpanName` LowCardinality(String) CODEC(ZSTD(1)),
    `SpanKind` LowCardinality(String) CODEC(ZSTD(1)),
    `ServiceName` LowCardinality(String) CODEC(ZSTD(1)),
    `ResourceAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `ScopeName` String CODEC(ZSTD(1)),
    `ScopeVersion` String CODEC(ZSTD(1)),
    `SpanAttributes` Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    `Duration` UInt64 CODEC(ZSTD(1)),
    `StatusCode` LowCardinality(String) CODEC(ZSTD(1)),
    `StatusMessage` String CODEC(ZSTD(1)),
    `Events.Timestamp` Array(DateTime64(9)) CODEC(ZSTD(1)),
    `Events.Name` Array(LowCardinality(String)) CODEC(ZSTD(1)),
    `Events.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    `Links.TraceId` Array(String) CODEC(ZSTD(1)),
    `Links.SpanId` Array(String) CODEC(ZSTD(1)),
    `Links.TraceState` Array(String) CODEC(ZSTD(1)),
    `Links.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    `__hdx_materialized_rum.sessionId` String MATERIALIZED ResourceAttributes['rum.sessionId'] CODEC(ZSTD(1)),
    `SampleRate` UInt64 MATERIALIZED greatest(toUInt64OrZero(SpanAttributes['SampleRate']), 1) CODEC(T64, ZSTD(1)),
    `ResourceAttributeItems` Array(String) ALIAS arrayMap((k, v) -> concat(k, '=', v), mapKeys(ResourceAttributes), mapValues(ResourceAttributes)),
    `SpanAttributeItems` Array(String) ALIAS arrayMap((k, v) -> concat(k, '=', v), mapKeys(SpanAttributes), mapValues(SpanAttributes)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_rum_session_id `__hdx_materialized_rum.sessionId` TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
    INDEX idx_span_attr_items SpanAttributeItems TYPE text(tokenizer = 'array'),
    INDEX idx_duration Duration TYPE minmax GRANULARITY 1,
    INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8
)
ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m`
(
    `Timestamp` DateTime,
    `ColumnIdentifier` LowCardinality(String),
    `Key` LowCardinality(String),
    `Value` String,
    `count` UInt64,
    INDEX idx_count_minmax count TYPE minmax GRANULARITY 1,
    INDEX idx_timestamp_minmax Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = SummingMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ColumnIdentifier, Key, Timestamp, Value)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_logs_key_rollup_15m`
(
    `Timestamp` DateTime,
    `ColumnIdentifier` LowCardinality(String),
    `Key` LowCardinality(String),
    `count` UInt64,
    INDEX idx_count_minmax count TYPE minmax GRANULARITY 1,
    INDEX idx_timestamp_minmax Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = SummingMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ColumnIdentifier, Key, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m`
(
    `Timestamp` DateTime,
    `ColumnIdentifier` LowCardinality(String),
    `Key` LowCardinality(String),
    `Value` String,
    `count` UInt64,
    INDEX idx_count_minmax count TYPE minmax GRANULARITY 1,
    INDEX idx_timestamp_minmax Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = SummingMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ColumnIdentifier, Key, Timestamp, Value)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;

CREATE TABLE `ds_0123456789abcdef_1`.`otel_traces_key_rollup_15m`
(
    `Timestamp` DateTime,
    `ColumnIdentifier` LowCardinality(String),
    `Key` LowCardinality(String),
    `count` UInt64,
    INDEX idx_count_minmax count TYPE minmax GRANULARITY 1,
    INDEX idx_timestamp_minmax Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = SummingMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ColumnIdentifier, Key, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `ds_0123456789abcdef_1`.`fleet` (maps Array(Map(LowCardinality(String), String)), services Array(String), ranks Array(UInt16)) ENGINE = Memory;

INSERT INTO `ds_0123456789abcdef_1`.`fleet` SELECT CAST('[{\'service.name\': \'api\', \'service.namespace\': \'blue\', \'service.version\': \'1.0.0\', \'service.instance.id\': \'df3ce861-4e24-a9d4-a5cc-1c5b805cb636\', \'k8s.namespace.name\': \'blue\', \'k8s.pod.name\': \'api-a59faa2659-efe65\', \'k8s.pod.uid\': \'867821c4-229a-f3ac-0725-8acc8d2d1df5\', \'k8s.node.name\': \'n2\', \'k8s.deployment.name\': \'api\', \'k8s.container.name\': \'api\', \'host.name\': \'n2\', \'cloud.region\': \'north\', \'telemetry.sdk.name\': \'opentelemetry\', \'telemetry.sdk.language\': \'go\', \'telemetry.sdk.version\': \'1.33.0\', \'deployment.environment.name\': \'blue\'}, {\'service.name\': \'api\', \'service.namespace\': \'blue\', \'service.version\': \'1.0.0\', \'service.instance.id\': \'84b0c91c-a69a-364c-f941-fc3397f7f909\', \'k8s.namespace.name\': \'blue\', \'k8s.pod.name\': \'api-a59faa2659-625d6\', \'k8s.pod.uid\': \'a7fd96b1-c903-4063-fe24-eead2db88eb2\', \'k8s.node.name\': \'n1\', \'k8s.deployment.name\': \'api\', \'k8s.container.name\': \'api\', \'host.name\': \'n1\', \'cloud.region\': \'north\', \'telemetry.sdk.name\': \'opentelemetry\', \'telemetry.sdk.language\': \'go\', \'telemetry.sdk.version\': \'1.33.0\', \'deployment.environment.name\': \'blue\'}]', 'Array(Map(LowCardinality(String), String))'), ['api', 'api'], [0, 0];

INSERT INTO `ds_0123456789abcdef_1`.`otel_traces` (`Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`) WITH (SELECT any(maps) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_maps, (SELECT any(services) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_services, (SELECT any(ranks) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_ranks SELECT fromUnixTimestamp64Nano(toInt64(at)) AS `Timestamp`, concat(lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 18093917581701004641))))), lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 760429742306897476)))))) AS `TraceId`, lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 18286737958523831515))))) AS `SpanId`, '' AS `ParentSpanId`, '' AS `TraceState`, concat('GET /', ['red', 'green'][colour + 1]) AS `SpanName`, 'Server' AS `SpanKind`, 'api' AS `ServiceName`, fleet_maps[pod + 1] AS `ResourceAttributes`, 'io.opentelemetry.auto' AS `ScopeName`, '2.11.0' AS `ScopeVersion`, map('colour', ['red', 'green'][colour + 1]) AS `SpanAttributes`, toUInt64(took) AS `Duration`, 'Unset' AS `StatusCode`, '' AS `StatusMessage` FROM (SELECT *, toUInt64(1796036400000000000 + intHash64(bitXor(h, 5643434134684502052)) % 3600000000000) AS at FROM (SELECT *, 0 AS at__stretch, [0, 0, 0, 1][(intHash64(bitXor(h, 1830615899496248764)) % 4) + 1] AS colour, 0 + intHash64(bitXor(h, 17830502951547508091)) % 2 AS pod, 1000000 + intHash64(bitXor(h, 8077881556992177700)) % 1000001 AS took FROM (SELECT number AS r, intHash64(bitXor(number, 13589328459711833196)) AS h FROM numbers_mt(0, 100))));

INSERT INTO `ds_0123456789abcdef_1`.`otel_logs` (`Timestamp`, `TraceId`, `SpanId`, `TraceFlags`, `SeverityText`, `SeverityNumber`, `ServiceName`, `ResourceAttributes`, `Body`, `ScopeName`, `ScopeVersion`, `LogAttributes`) WITH (SELECT any(maps) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_maps, (SELECT any(services) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_services, (SELECT any(ranks) FROM `ds_0123456789abcdef_1`.`fleet`) AS fleet_ranks SELECT fromUnixTimestamp64Nano(toInt64(at)) AS `Timestamp`, concat(lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 18093917581701004641))))), lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 760429742306897476)))))) AS `TraceId`, lower(hex(reinterpretAsFixedString(intHash64(bitXor(h, 18286737958523831515))))) AS `SpanId`, 1 AS `TraceFlags`, 'INFO' AS `SeverityText`, toUInt8(9) AS `SeverityNumber`, 'api' AS `ServiceName`, fleet_maps[pod + 1] AS `ResourceAttributes`, concat('saw ', ['red', 'green'][colour + 1]) AS `Body`, 'io.opentelemetry.auto' AS `ScopeName`, '2.11.0' AS `ScopeVersion`, CAST(map(), 'Map(String, String)') AS `LogAttributes` FROM (SELECT *, toUInt64(1796036400000000000 + intHash64(bitXor(h, 5643434134684502052)) % 3600000000000) AS at FROM (SELECT *, 0 AS at__stretch, [0, 0, 0, 1][(intHash64(bitXor(h, 1830615899496248764)) % 4) + 1] AS colour, 0 + intHash64(bitXor(h, 17830502951547508091)) % 2 AS pod FROM (SELECT number AS r, intHash64(bitXor(number, 13589328459711833196)) AS h FROM numbers_mt(0, 100))));

DROP TABLE `ds_0123456789abcdef_1`.`fleet` SYNC;

INSERT INTO `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m` (Timestamp, ColumnIdentifier, Key, Value, count)
SELECT bucket AS Timestamp, ColumnIdentifier, Key, Value, sum(n) AS count FROM (
    SELECT bucket, 'ResourceAttributes' AS ColumnIdentifier, replaceRegexpAll(CAST(entry.1 AS String), '\\[\\d+\\]', '[*]') AS Key, entry.2 AS Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, any(ResourceAttributes) AS entries, count() AS n FROM `ds_0123456789abcdef_1`.`otel_logs` GROUP BY bucket, cityHash64(ResourceAttributes)) ARRAY JOIN entries AS entry
    UNION ALL
    SELECT bucket, 'LogAttributes' AS ColumnIdentifier, replaceRegexpAll(CAST(name AS String), '\\[\\d+\\]', '[*]') AS Key, Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, entry.1 AS name, entry.2 AS Value, count() AS n FROM `ds_0123456789abcdef_1`.`otel_logs` ARRAY JOIN LogAttributes AS entry GROUP BY bucket, name, Value)
    UNION ALL
    SELECT bucket, 'ScopeAttributes' AS ColumnIdentifier, replaceRegexpAll(CAST(name AS String), '\\[\\d+\\]', '[*]') AS Key, Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, entry.1 AS name, entry.2 AS Value, count() AS n FROM `ds_0123456789abcdef_1`.`otel_logs` ARRAY JOIN ScopeAttributes AS entry GROUP BY bucket, name, Value)
    UNION ALL
    SELECT bucket, 'NativeColumn' AS ColumnIdentifier, pair.1 AS Key, pair.2 AS Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, SeverityText, ServiceName, ScopeName, ScopeVersion, ResourceSchemaUrl, ScopeSchemaUrl, count() AS n FROM `ds_0123456789abcdef_1`.`otel_logs` GROUP BY bucket, SeverityText, ServiceName, ScopeName, ScopeVersion, ResourceSchemaUrl, ScopeSchemaUrl) ARRAY JOIN [('SeverityText', CAST(SeverityText AS String)), ('ServiceName', CAST(ServiceName AS String)), ('ScopeName', CAST(ScopeName AS String)), ('ScopeVersion', CAST(ScopeVersion AS String)), ('ResourceSchemaUrl', CAST(ResourceSchemaUrl AS String)), ('ScopeSchemaUrl', CAST(ScopeSchemaUrl AS String))] AS pair
)
GROUP BY Timestamp, ColumnIdentifier, Key, Value;

INSERT INTO `ds_0123456789abcdef_1`.`otel_logs_key_rollup_15m` (Timestamp, ColumnIdentifier, Key, count)
SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count
FROM `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m`
GROUP BY ColumnIdentifier, Key, Timestamp;

CREATE MATERIALIZED VIEW `ds_0123456789abcdef_1`.`otel_logs_key_rollup_15m_mv` TO `ds_0123456789abcdef_1`.`otel_logs_key_rollup_15m` AS
SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count
FROM `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m`
GROUP BY ColumnIdentifier, Key, Timestamp;

CREATE MATERIALIZED VIEW `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m_mv` TO `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m` AS
WITH elements AS (
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'ResourceAttributes' AS ColumnIdentifier, replaceRegexpAll(entry.1, '\\[\\d+\\]', '[*]') AS Key, CAST(entry.2 AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs` ARRAY JOIN ResourceAttributes AS entry
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'LogAttributes' AS ColumnIdentifier, replaceRegexpAll(entry.1, '\\[\\d+\\]', '[*]') AS Key, CAST(entry.2 AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs` ARRAY JOIN LogAttributes AS entry
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'ScopeAttributes' AS ColumnIdentifier, replaceRegexpAll(entry.1, '\\[\\d+\\]', '[*]') AS Key, CAST(entry.2 AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs` ARRAY JOIN ScopeAttributes AS entry
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'SeverityText' AS Key, CAST(SeverityText AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ServiceName' AS Key, CAST(ServiceName AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ScopeName' AS Key, CAST(ScopeName AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ScopeVersion' AS Key, CAST(ScopeVersion AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ResourceSchemaUrl' AS Key, CAST(ResourceSchemaUrl AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ScopeSchemaUrl' AS Key, CAST(ScopeSchemaUrl AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_logs`
)
SELECT Timestamp, ColumnIdentifier, Key, Value, count() AS count FROM elements
GROUP BY Timestamp, ColumnIdentifier, Key, Value;

INSERT INTO `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m` (Timestamp, ColumnIdentifier, Key, Value, count)
SELECT bucket AS Timestamp, ColumnIdentifier, Key, Value, sum(n) AS count FROM (
    SELECT bucket, 'ResourceAttributes' AS ColumnIdentifier, replaceRegexpAll(CAST(entry.1 AS String), '\\[\\d+\\]', '[*]') AS Key, entry.2 AS Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, any(ResourceAttributes) AS entries, count() AS n FROM `ds_0123456789abcdef_1`.`otel_traces` GROUP BY bucket, cityHash64(ResourceAttributes)) ARRAY JOIN entries AS entry
    UNION ALL
    SELECT bucket, 'SpanAttributes' AS ColumnIdentifier, replaceRegexpAll(CAST(name AS String), '\\[\\d+\\]', '[*]') AS Key, Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, entry.1 AS name, entry.2 AS Value, count() AS n FROM `ds_0123456789abcdef_1`.`otel_traces` ARRAY JOIN SpanAttributes AS entry GROUP BY bucket, name, Value)
    UNION ALL
    SELECT bucket, 'NativeColumn' AS ColumnIdentifier, pair.1 AS Key, pair.2 AS Value, n FROM (SELECT toStartOfFifteenMinutes(Timestamp) AS bucket, ServiceName, SpanName, SpanKind, StatusCode, ScopeName, ScopeVersion, count() AS n FROM `ds_0123456789abcdef_1`.`otel_traces` GROUP BY bucket, ServiceName, SpanName, SpanKind, StatusCode, ScopeName, ScopeVersion) ARRAY JOIN [('ServiceName', CAST(ServiceName AS String)), ('SpanName', CAST(SpanName AS String)), ('SpanKind', CAST(SpanKind AS String)), ('StatusCode', CAST(StatusCode AS String)), ('ScopeName', CAST(ScopeName AS String)), ('ScopeVersion', CAST(ScopeVersion AS String))] AS pair
)
GROUP BY Timestamp, ColumnIdentifier, Key, Value;

INSERT INTO `ds_0123456789abcdef_1`.`otel_traces_key_rollup_15m` (Timestamp, ColumnIdentifier, Key, count)
SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count
FROM `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m`
GROUP BY ColumnIdentifier, Key, Timestamp;

CREATE MATERIALIZED VIEW `ds_0123456789abcdef_1`.`otel_traces_key_rollup_15m_mv` TO `ds_0123456789abcdef_1`.`otel_traces_key_rollup_15m` AS
SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count
FROM `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m`
GROUP BY ColumnIdentifier, Key, Timestamp;

CREATE MATERIALIZED VIEW `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m_mv` TO `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m` AS
WITH elements AS (
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'ResourceAttributes' AS ColumnIdentifier, replaceRegexpAll(entry.1, '\\[\\d+\\]', '[*]') AS Key, CAST(entry.2 AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces` ARRAY JOIN ResourceAttributes AS entry
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'SpanAttributes' AS ColumnIdentifier, replaceRegexpAll(entry.1, '\\[\\d+\\]', '[*]') AS Key, CAST(entry.2 AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces` ARRAY JOIN SpanAttributes AS entry
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ServiceName' AS Key, CAST(ServiceName AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'SpanName' AS Key, CAST(SpanName AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'SpanKind' AS Key, CAST(SpanKind AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'StatusCode' AS Key, CAST(StatusCode AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ScopeName' AS Key, CAST(ScopeName AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
    UNION ALL
    SELECT toStartOfFifteenMinutes(Timestamp) AS Timestamp, 'NativeColumn' AS ColumnIdentifier, 'ScopeVersion' AS Key, CAST(ScopeVersion AS String) AS Value FROM `ds_0123456789abcdef_1`.`otel_traces`
)
SELECT Timestamp, ColumnIdentifier, Key, Value, count() AS count FROM elements
GROUP BY Timestamp, ColumnIdentifier, Key, Value;

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM `ds_0123456789abcdef_1`.`otel_logs`);

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM `ds_0123456789abcdef_1`.`otel_traces`);

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM (SELECT Timestamp, ColumnIdentifier, Key, Value, sum(count) AS count FROM `ds_0123456789abcdef_1`.`otel_logs_kv_rollup_15m` GROUP BY Timestamp, ColumnIdentifier, Key, Value));

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM (SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count FROM `ds_0123456789abcdef_1`.`otel_logs_key_rollup_15m` GROUP BY Timestamp, ColumnIdentifier, Key));

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM (SELECT Timestamp, ColumnIdentifier, Key, Value, sum(count) AS count FROM `ds_0123456789abcdef_1`.`otel_traces_kv_rollup_15m` GROUP BY Timestamp, ColumnIdentifier, Key, Value));

SELECT count() AS rows, sum(bits) AS total, groupBitXor(bits) AS parity FROM (SELECT cityHash64(*) AS bits FROM (SELECT Timestamp, ColumnIdentifier, Key, sum(count) AS count FROM `ds_0123456789abcdef_1`.`otel_traces_key_rollup_15m` GROUP BY Timestamp, ColumnIdentifier, Key));
