"""Bounds on work and memory."""

from __future__ import annotations

import subprocess
import sys


def test_a_long_session_keeps_every_structure_within_its_number(kit):
    rig = kit.Rig().book(latency=10, result="x" * 20)
    rig.tool("gated", kit.SIDE_EFFECT, confirm=True)
    for epoch in range(1, 2_001):
        calls = kit.call(f"t{epoch}.0", n=epoch), kit.call(f"t{epoch}.1", "gated", n=epoch)
        execution = rig.execute(*calls, epoch=epoch)
        if epoch % 4:
            execution.discard()
        rig.to(rig.clock.now + 10)
        if epoch % 100 == 0:
            execution.mark_delivered()
    desk = rig.engine._desk
    sizes = (len(desk.mailbox), len(desk.recent), len(desk.confirmations.pending), len(desk.running))
    assert sizes == (0, 32, 8, 0)
    assert rig.engine.idempotency_usage() == (256, 256 * 20)
    assert rig.engine.open_responses == 2_000 // 4 - 20  # what its owner neither delivered nor discarded stays known


def test_a_finished_run_holds_no_slot_of_its_execution(rig, kit):
    rig.delivered(kit.call("t1.0"))
    [run] = rig.engine._desk.recent
    assert run.slot is None


def test_importing_the_engine_imports_no_schema_library():
    code = "import sys, bargein.pipelines.tools.engine; print({'jsonschema', 'referencing'} & sys.modules.keys())"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "set()\n"
