"""`advisor worker` that takes others for dead after a second or two: no test waits for minutes."""

from __future__ import annotations

from advisor.cli import main
from advisor.jobs import queue, worker
from advisor.service import sweep_work

queue.STALLED_S = 2.0
queue.EVERY_MINUTE = "* * * * * */1"
worker.HEARTBEAT_S = 0.3
sweep_work.LEASE_S = 2

main(["worker"])
