"""Recordings and replays from Python: `from halo_lang.replay import Recorder, read_recording, replay_mocks`."""

from __future__ import annotations

from .library.recordings import (
    ReadRecording,
    RecordedCall,
    Recorder,
    read_recording,
    read_recording_at,
    replay_mocks,
)

__all__ = ["ReadRecording", "RecordedCall", "Recorder", "read_recording", "read_recording_at", "replay_mocks"]
