"""Writes the chart's dashboards from code: `python helm/monitoring`; `--check` says whether they are current."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dashboard import UID, build_dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

FOLDER = Path(__file__).resolve().parents[1] / "proctor" / "dashboards"


def main() -> int:
    """Write or check; return 1 where a file is not current."""
    path = FOLDER / f"{UID}.json"
    text = json.dumps(build_dashboard(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
    current = path.is_file() and path.read_text("utf-8") == text
    if "--check" in sys.argv[1:]:
        if not current:
            print(f"{path.name} is not what helm/monitoring makes: run `make generate` and commit", file=sys.stderr)
        return int(not current)
    path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
