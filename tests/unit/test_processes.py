"""The end of a program that leads a session (providers/processes.py)."""

from __future__ import annotations

import subprocess

from halo_lang.providers.processes import kill_session, session_members


def test_nothing_of_a_session_runs_once_it_was_killed() -> None:
    forking = "trap '' TERM; for i in $(seq 40); do (while :; do sleep 5; done) & done; echo ready; wait"
    with subprocess.Popen(["bash", "-c", forking], stdout=subprocess.PIPE, start_new_session=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        assert len(session_members(program)) > 40
        kill_session(program)
        assert session_members(program) == ()
