"""Halo in pytest (library.md): the fixture `halo_runtime`, which never calls a model or a tool for real, and the marker
`halo_replay`, with which it answers as a kept recording does.

    @pytest.mark.halo_replay("recordings/6f9696ef-….jsonl")
    async def test_the_report_stays_the_same(halo_runtime):
        recording = halo_runtime.recording
        result = await halo_runtime.load(load("tidy.halo")).run(recording.pipeline, recording.args)
        assert result.output == recording.output
"""

from __future__ import annotations

from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .library.recordings import ReadRecording
    from .library.runtime import HaloRuntime

RECORDINGS = Path(".halo", "recordings")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "halo_replay(recording): answer as a recording does, by its run id or its path")


@pytest.fixture
def halo_runtime(request: pytest.FixtureRequest) -> HaloRuntime:
    """A `HaloRuntime` in which a call that is not mocked fails, and never runs. Load a program into it. With the marker
    `halo_replay` its `recording` is the marker's, and its mocks answer as that does."""
    from .library.recordings import replay_mocks
    from .library.runtime import HaloRuntime

    runtime = HaloRuntime(live=False)
    marker = request.node.get_closest_marker("halo_replay")
    if marker is not None:
        if len(marker.args) != 1 or not isinstance(marker.args[0], str):
            pytest.fail(
                'halo_replay takes one recording: its run id or its path, as in halo_replay("a.jsonl")', pytrace=False
            )
        runtime.recording = _found(marker.args[0], [request.path.parent, Path.cwd(), request.config.rootpath])
        runtime.mock_all(replay_mocks(runtime.recording))
    return runtime


def _found(named: str, folders: list[Path]) -> ReadRecording:
    """A recording by its path or its run id, from the first of some folders that has it."""
    from .boundary.host import HaloError
    from .library.recordings import read_recording_at

    for folder in folders:
        for path in (folder / named, folder / RECORDINGS / f"{named}.jsonl"):
            if path.is_file():
                try:
                    return read_recording_at(path)
                except HaloError as trouble:
                    pytest.fail(f"{path}: {trouble}", pytrace=False)
    pytest.fail(f"there is no recording {named}: neither a path nor a run id of .halo/recordings", pytrace=False)
