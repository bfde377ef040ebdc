"""Alert rules, in the tool of Prometheus itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "helm" / "proctor" / "rules" / "proctor.yaml"


def test_rules_are_rules(promtool: Path) -> None:
    """Dashboards and alerts: `promtool check rules`."""
    checked = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_fires_where_it_should_and_only_there(promtool: Path, tmp_path: Path) -> None:
    """Dashboards and alerts: verdict failed, suite stale, infrastructure errors, ungraded, operator stuck."""
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("rules_test.yaml"), tmp_path)
    tested = subprocess.run(
        [promtool, "test", "rules", "rules_test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
