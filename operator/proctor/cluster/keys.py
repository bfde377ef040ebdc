"""What a run's own programs know each other by: derived from the master key, so that no Secret is ever read back."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from proctor.core.gatewaypolicy.tokens import derive_run_key


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The secrets of one run.

    Attributes:
        run_key: signs cell tokens.
        operator_token: opens the gateway's control doors.
        dataset_password: of the run's restricted ClickHouse users.
    """

    run_key: str = field(repr=False)
    operator_token: str = field(repr=False)
    dataset_password: str = field(repr=False)

    @classmethod
    def derive(cls, master: bytes, run_uid: str) -> RunKeys:
        """Return the secrets of the run with a uid; equal for equal input."""
        run_key = derive_run_key(master, run_uid)
        return cls(
            run_key=run_key.hex(),
            operator_token=hmac.digest(run_key, b"operator", "sha256").hex(),
            dataset_password=hmac.digest(run_key, b"dataset", "sha256").hex(),
        )
