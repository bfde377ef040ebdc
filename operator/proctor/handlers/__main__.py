"""The operator's process: ``python -m proctor.handlers``."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from dataclasses import replace
from importlib.metadata import version

from proctor.adapters.prometheus.metrics import MetricsServer, OperatorMetrics
from proctor.bootstrap.logging import set_up_logging
from proctor.cluster.opening import open_installation
from proctor.errors import InvalidInput, ProctorError, Terminal
from proctor.handlers.operating import Operator
from proctor.handlers.skin import watch

logger = logging.getLogger("proctor.handlers")

_USAGE = 64


async def run() -> None:
    """Operate until told to end.

    Raises:
        InvalidInput: its settings are wrong.
        Terminal: there is no API server to be found.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_installation() as installation:
        metrics = OperatorMetrics(version("proctor"))
        server = _serve(metrics, installation.settings.metrics_port)
        logger.info("operating")
        try:
            heard = replace(installation, gateway_heard=metrics.observe_gateway)
            await watch(Operator(heard, metrics), heard.settings, stop=stop)
        finally:
            server.close()


def _serve(metrics: OperatorMetrics, port: int) -> MetricsServer:
    try:
        return metrics.serve(port)
    except OSError as e:
        raise Terminal(f"serving metrics on port {port}: {e.strerror}; choose another metricsPort") from e


def main() -> int:
    """Run the operator; return its exit code."""
    set_up_logging()
    try:
        asyncio.run(run())
    except InvalidInput as error:
        print(error, file=sys.stderr)  # noqa: T201 - the kubelet keeps a container's last words
        return _USAGE
    except ProctorError as error:
        print(error, file=sys.stderr)  # noqa: T201 - as above
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
