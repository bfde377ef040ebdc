"""One of several engines that know each other: `python sharded_engine.py DIR CLUSTER HTTP TCP PORT…`, a port per shard.

Proctor's own engines may connect to nothing, so none of them can be a shard; this is the same library, unconfined, on
loopback. It ends with its standard input.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from proctor.local.engine.serve import _load_engine

_CONFIG = """<clickhouse>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<profiles><default/></profiles><quotas><default/></quotas>
<remote_servers><{cluster}>{shards}</{cluster}></remote_servers>
</clickhouse>"""
_SHARD = "<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"
_SERVE = (
    "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP;"
    " SELECT sleepEachRow(0.1) FROM system.numbers SETTINGS max_block_size=1 FORMAT Null"
)


def main(folder: Path, cluster: str, http: str, tcp: str, *shards: str) -> None:
    (folder / "data").mkdir(parents=True)
    os.chdir(folder)
    listed = "".join(_SHARD.format(port=port) for port in shards)
    Path("config.xml").write_text(_CONFIG.format(cluster=cluster, http=http, tcp=tcp, shards=listed), "utf-8")
    threading.Thread(target=_end_with_input, daemon=True).start()
    _load_engine().query(_SERVE, "TabSeparated", path=str(folder / "data"))


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
