"""The work of `bench/cells.py` done by inspect-ai: in each sample a mock model calls a tool of an HTTP MCP server.

PYTHON inspect_rows.py URL SAMPLES CALLS     needs inspect-ai and mcp; prints JSON
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import tempfile
import time

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.tool import mcp_server_http

MODEL = "mockllm/model"


def main() -> None:
    url, count, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    one = [ModelOutput.for_tool_call(MODEL, "query", {"sql": "cheap_rows"}) for _ in range(calls)]
    one.append(ModelOutput.for_tool_call(MODEL, "submit", {"answer": "1234 rows"}))
    for output in one:
        # Given, so that nothing is counted by a tokenizer, which would have to be fetched.
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    work = Task(
        dataset=[Sample(input="What failed?", target="1234") for _ in range(count)],
        solver=react(tools=[mcp_server_http(url=url, name="rows")]),
        scorer=includes(),
    )
    # One sample at a time: the mock model's outputs are one list for all.
    began, before = time.perf_counter(), os.times()
    with tempfile.TemporaryDirectory() as logs:
        (log,) = run_eval(
            work,
            model=get_model(MODEL, custom_outputs=one * count),
            max_samples=1,
            display="none",
            log_dir=logs,
        )
        after, wall = os.times(), time.perf_counter() - began
        assert log.status == "success", str(log.error)[:500]
        assert log.samples is not None
        assert sum(message.role == "tool" for message in log.samples[0].messages) >= calls
    cpu = after.user + after.system - before.user - before.system
    print(json.dumps({"version": importlib.metadata.version("inspect-ai"), "cpu": cpu, "wall": wall}))


if __name__ == "__main__":
    main()
