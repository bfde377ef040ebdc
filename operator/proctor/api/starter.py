"""The manifest that `proctor init` writes; a test keeps it valid."""

from __future__ import annotations

STARTER = """\
# An EvalSuite: which MCP servers, models and scenarios are compared, and what a run has to show to pass.
#   proctor validate suite.yaml     every problem, with line, field and fix
#   proctor run --dry-run suite.yaml     the cells, and what they may cost at most
#   proctor run suite.yaml
# All fields: docs/reference/evalsuite.md
apiVersion: proctor.dev/v1alpha1
kind: EvalSuite
metadata: {name: my-servers}
spec:
  scenarios:                       # incidents to investigate
  - {name: error-root-cause, volume: "0.02", seed: 42}   # volume "1" is full scale; decimals are always quoted
  anchor: "2026-11-30T12:00:00Z"   # the instant that "the past 10 minutes" means; fixed, so that data is used again

  servers:                         # what is being judged; every server meets every model
  - name: current
    stdio: {command: [mcp-clickhouse]}
    env:                           # value, secretKeyRef, or a field of the dataset; nothing else is passed
    - {name: CLICKHOUSE_HOST, dataset: host}
    - {name: CLICKHOUSE_PORT, dataset: port}
    - {name: CLICKHOUSE_USER, dataset: user}
    - {name: CLICKHOUSE_PASSWORD, dataset: password}
    - {name: CLICKHOUSE_DATABASE, dataset: database}
    - {name: CLICKHOUSE_SECURE, value: "false"}
    allowedTools: [list_databases, list_tables, run_query]   # or deniedTools
    sqlTool: {name: run_query, argument: query}              # lets the control cells play through this server
  - name: candidate                # put your change here: another command, version or tool list
    stdio: {command: [mcp-clickhouse]}
    env:
    - {name: CLICKHOUSE_HOST, dataset: host}
    - {name: CLICKHOUSE_PORT, dataset: port}
    - {name: CLICKHOUSE_USER, dataset: user}
    - {name: CLICKHOUSE_PASSWORD, dataset: password}
    - {name: CLICKHOUSE_DATABASE, dataset: database}
    - {name: CLICKHOUSE_SECURE, value: "false"}
    allowedTools: [list_databases, list_tables, run_query]
    sqlTool: {name: run_query, argument: query}

  models:
  - {name: newest, scripted: {policy: newest}}   # needs no key; try a real one like this:
  # - name: opus
  #   anthropic: {model: claude-opus-4-7, secretKeyRef: {name: anthropic, key: api-key}}   # or ANTHROPIC_API_KEY
  #   price: {inputPerMTok: "5", outputPerMTok: "25", cacheReadPerMTok: "0.5", cacheWritePerMTok: "6.25"}

  agent: {runtime: Builtin, maxTurns: 25, maxToolCalls: 40, deadlineSeconds: 300, maxTokens: 400000}   # maxUSD: "2"
  replicates: 5                    # repeats of each scenario and arm: more of them, narrower intervals
  parallelism: 4                   # cells that run at once
  judge: {none: true}              # or anthropic: {model: …, secretKeyRef: …}, votes: 3

  gate:
    enforcement: Enforce           # or Audit: measure, and stop nothing
    baseline: {server: current}    # or {model: NAME}
    maxDrop: "0.05"                # a candidate may score this much less, by the interval of paired differences
    # minimum: "0.70"              # and its own interval has to stay above this
"""
