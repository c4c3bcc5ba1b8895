"""`halo signal RUN EVENT JSON`: sends an event to a run that may not listen for it yet (runs.md §5)."""

from __future__ import annotations

import sys

from ..app.resuming import signal_line
from ..boundary.recording import RecordingError
from ..doors.folder import KeepingError
from ..doors.stores import RunUnknown
from .failing import CommandError
from .keep import run_store
from .output import visible
from .resume import has_ended, json_value
from .runs import described, way_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..doors.stores import FileRunStore


EXAMPLE = """The event is kept until the run listens for it, and delivered once, in the order of arrival. For example:

  halo signal 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 Slack.Reaction '{"reaction": "approve"}'
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("event", metavar="EVENT", help="such as Slack.Reaction")
    parser.add_argument("payload", metavar="JSON", help="the event's payload")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if not all(options.event.split(".")):
        raise CommandError(f"an event's name is written like Slack.Reaction, not `{options.event[:80]}`", 2)
    line = signal_line(options.event, json_value("JSON", options.payload))
    store = run_store()
    try:
        store.add(options.run, line)
    except RunUnknown:
        if has_ended(options.run):
            raise CommandError(
                f"the run {options.run} has ended, or has not paused yet", code="RESUME_CONFLICT"
            ) from None
        raise CommandError(f"there is no paused run {options.run}; `halo runs` lists them") from None
    except (RecordingError, KeepingError) as trouble:
        raise CommandError(trouble.message) from None
    if not options.quiet:
        print("; ".join(("kept for the run", *_way_on(store, options.run))), file=sys.stderr)
    return 0


def _way_on(store: FileRunStore, run_id: str) -> list[str]:
    try:
        said = way_on(described(run_id, store.peek(run_id)))
    except (RunUnknown, KeepingError):
        return []  # it took the event just now, and has ended
    return [visible(said)] if said else []
