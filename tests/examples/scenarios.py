"""What each example meets when it is run in the tests: its arguments, the answers of models and services, what is
around it, and the people who are asked.

Owns the data alone; `world.py` answers from it, `test_examples.py` runs it.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Uses:
    """An answer of a model that asks for tool calls: names on the wire and arguments."""

    calls: Sequence[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Scenario:
    """A run of an example's main pipeline.

    `yes` are methods that are approved; `resumes` the answers of people and events, one after the other, each as flags
    of `halo resume`; `ends` is how the run ends at last. `changed` replaces texts of the program, where it would wait.
    `before` makes what no file can be. `wrote` are files that must hold something afterwards.
    """

    pipeline: str
    args: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    web: Mapping[str, tuple[int, Any]] = field(default_factory=dict)
    slack: Mapping[str, Any] = field(default_factory=dict)
    yes: Sequence[str] = ()
    resumes: Sequence[Sequence[str]] = ()
    ends: str = "completed"
    output: Any = ...
    changed: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[Path], None] | None = None
    wrote: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


POSTED = {"chat.postMessage": {"ts": "1700000000.000100", "channel": "C0TEST"}}


def git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=A tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> None:
    """A repository with a tag `v1.0`, a branch `main`, and a commit on top of both."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "app.py").write_text("def total(items):\n    return sum(items)\n", "utf-8")
    git(folder, "add", "app.py")
    git(folder, "commit", "-q", "-m", "Add totals")
    git(folder, "tag", "v1.0")
    git(folder, "checkout", "-q", "-b", "feature")
    (folder / "app.py").write_text("def total(items):\n    return eval('+'.join(items))\n", "utf-8")
    git(folder, "commit", "-q", "-a", "-m", "Add totals of texts")


def database(name: str, *statements: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with sqlite3.connect(folder / name) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return make


def together(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for step in steps:
            step(folder)

    return make


SCENARIOS: dict[str, Scenario] = {
    "quickstart": Scenario(
        "Tidy",
        models={"Rewrite this in one short": "The lights in the garage are out."},
        changed={"embedded/smollm2": "openai/gpt-4o-mini"},
        yes=["Notes.write"],
        output="The lights in the garage are out.",
        wrote={"notes/tidy/garage.txt": "The lights in the garage are out.\n"},
    ),
    "ticket-triage": Scenario(
        "Triage",
        {"ticket": "Nothing loads since ten. My number is +49 30 1234567, order ORD-12345678."},
        {
            "Reply with JSON alone": {"kind": "bug", "urgent": True, "summary": "Nothing loads"},
            "List the steps that reproduce": "1. Open the start page.",
            "Thank for the report": "Thank you. Which browser is it?",
        },
        slack=POSTED,
        output="Thank you. Which browser is it?",
    ),
    "review-loop": Scenario(
        "Write",
        {"brief": "A notice on the door: from May the shop opens at nine instead of eight."},
        {
            "Write the text that this brief": ("Our hours change.", "From May we open at nine instead of eight."),
            "Judge the draft": ({"score": 35, "problems": ["it does not say when"]}, {"score": 92, "problems": []}),
        },
        output="From May we open at nine instead of eight.",
    ),
    "research": Scenario(
        "Research",
        {"question": "Does a four-day week work?"},
        {
            "Split the question": ["Output", "Health"],
            "Your task: research": "Much speaks for it.",
            "Your task: object": "Most studies are short.",
            "Say in three sentences": "Output holds. Studies are short. Health is open.",
            "Write a report of one page": "It seems to work; studies are short.",
        },
        output="It seems to work; studies are short.",
    ),
    "release-notes": Scenario(
        "ReleaseNotes",
        {"since": "v1.0", "version": "v1.1"},
        {"Write the notes for version": "## Added\n\n- Totals of texts"},
        before=repository,
        resumes=[["--yes"]],
        output="Wrote notes/v1.1.md.",
        wrote={"notes/v1.1.md": "# v1.1\n\n## Added\n\n- Totals of texts\n"},
    ),
    "data-cleaning": Scenario(
        "Clean",
        models={
            "Main St": {"street": "1 Main St", "postcode": "12345", "city": "Town", "sure": True},
            "somewhere in": {"street": None, "postcode": None, "city": "Town", "sure": False},
        },
        before=database(
            "contacts.db",
            "CREATE TABLE contacts (id INTEGER PRIMARY KEY, address TEXT, street TEXT, postcode TEXT, city TEXT,"
            " cleaned INTEGER DEFAULT 0)",
            "INSERT INTO contacts (address) VALUES ('1 Main St, 12345 Town'), ('somewhere in Town')",
        ),
        output=[{"rows": 1}, "left"],
    ),
    "expense-approval": Scenario(
        "Expense",
        {"text": "Office chair, 480 EUR, receipt attached. Claim E2."},
        {
            "Reply with JSON alone": {
                "id": "E2",
                "amount": 480,
                "currency": "EUR",
                "purpose": "an office chair",
                "allowed": True,
                "reason": "",
            }
        },
        {"POST /v1/transfers": (201, {"state": "sent"})},
        resumes=[["--yes"]],
    ),
    "on-call": Scenario(
        "Alert",
        {"alert": "checkout: 5xx over 2%"},
        {
            "Find out what is behind": (
                Uses([("Ops_get", {"path": "health/checkout"}), ("Ops_get", {"path": "logs/checkout"})]),
                Uses([("Ops_post", {"path": "restart/checkout"})]),
                {"cause": "the disk was full", "sure": True, "done": ["restarted"], "next": "add a disk"},
            )
        },
        {
            "GET /api/health/checkout": (200, {"state": "failing"}),
            "GET /api/logs/checkout": (200, "ERROR no space left on device"),
            "POST /api/restart/checkout": (202, {}),
        },
        yes=["Ops.post"],
        output="Cause: the disk was full. Next: add a disk",
    ),
    "fix-tests": Scenario(
        "FixTests",
        {"task": "A function add(a, b) that gives the sum of two numbers."},
        {"Write `solution.py`": ("def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b")},
        output="Passed after 1 retries.",
        wrote={"work/solution.py": "def add(a, b):\n    return a + b\n"},
    ),
    "translate-docs": Scenario(
        "Translate",
        {"page": "start.md", "languages": ["de", "fr"]},
        {
            "] de [end": "# Anfang\n\nRufen Sie `halo init` auf.",
            "] fr [end": "# Début\n\nLancez `halo init`.",
            "Is anything missing": {"faithful": True, "faults": []},
        },
        output=[{"path": "de/start.md"}, {"path": "fr/start.md"}],
        wrote={"docs/fr/start.md": "# Début\n\nLancez `halo init`."},
    ),
    "meeting-minutes": Scenario(
        "Minutes",
        {"meeting": "m1", "transcript": "A new flyer. The lead will call the printer; the room is booked by May."},
        {
            "Write the minutes": "Decided: a new flyer.",
            "List what somebody took on": [
                {"what": "call the printer", "who": "lead", "due": ""},
                {"what": "book the room", "who": "", "due": "May"},
            ],
        },
        output="Decided: a new flyer.",
    ),
    "faq": Scenario(
        "Answer",
        {"question": "May I bring my dog?"},
        {"Reply with JSON alone": {"answer": "", "known": False}},
        resumes=[["--answer", '{"text": "Yes, on a leash."}']],
        output="Yes, on a leash.",
    ),
    "index-handbook": Scenario(
        "BuildIndex",
        models={
            "Leave is asked for": {"title": "Leave", "summary": "How to ask.", "keywords": ["leave"]},
            "Travel is booked": {"title": "Travel", "summary": "How to book.", "keywords": ["travel"]},
        },
        output=[{"id": "leave.md"}, {"id": "travel.md"}],
    ),
    "contract-review": Scenario(
        "ReviewContract",
        {"path": "lease.txt"},
        {
            "List clauses on liability": "4: the tenant is liable without limit.",
            "List clauses on term": "none",
            "List clauses on personal data": "none",
            "Join the concerns": {
                "grave": True,
                "concerns": [{"clause": "4", "why": "liability without limit", "grave": True}],
            },
        },
        resumes=[["--no", "not as it stands"]],
        ends="halted",
    ),
    "code-review": Scenario(
        "ReviewBranch",
        models={
            "open a way for an attacker": "app.py, line 2: eval runs what users send.",
            "will be when used": "none",
            "is not tested": "Totals of texts.",
            "Write one review": "app.py, line 2: do not use eval; convert each item with float.",
        },
        slack=POSTED,
        before=repository,
        resumes=[["--yes"]],
    ),
    "sql-analyst": Scenario(
        "Ask",
        {"question": "How many orders, and of what worth?"},
        {
            "Answer the question": (
                Uses([("Sales_tables", {})]),
                Uses([("Sales_query", {"sql": "SELECT count(*) AS n, sum(amount) AS worth FROM orders"})]),
                Uses([("Sales_query", {"sql": "DELETE FROM orders"})]),
                "2 orders of 42 in all, by SELECT count(*), sum(amount) FROM orders",
            )
        },
        before=database("sales.db", "CREATE TABLE orders (amount)", "INSERT INTO orders VALUES (40), (2)"),
        output="2 orders of 42 in all, by SELECT count(*), sum(amount) FROM orders",
    ),
    "postmortem": Scenario(
        "Postmortem",
        {"channel": "C0INCIDENT", "name": "disk"},
        {"One line an event": "10:00 the disk was full, seen by support", "Write the post-mortem": "# The full disk"},
        slack={"conversations.history": {"messages": [{"ts": "1700000000.000100", "text": "the disk is full"}]}},
        yes=["Report.write"],
        output="Written to disk/.",
        wrote={"postmortems/disk/report.md": "# The full disk"},
    ),
    "newsletter": Scenario(
        "Issue",
        {"feeds": ["flour", "ovens"]},
        {
            "Pick at most three": "Flour is dear.",
            "Make an issue": "# Flour\n\n`ovens` could not be read.",
        },
        {"GET /flour": (200, "Flour is dear."), "GET /ovens": (503, "")},
        output="# Flour\n\n`ovens` could not be read.",
    ),
    "invoice": Scenario(
        "Invoice",
        {"text": "No. 7. Bread 3.00, tax 0.21. Total 3.21."},
        {
            "Reply with JSON alone": (
                {"number": "7", "lines": [{"what": "bread", "amount": 3.0}], "total": 3.21},
                {
                    "number": "7",
                    "lines": [{"what": "bread", "amount": 3.0}, {"what": "tax", "amount": 0.21}],
                    "total": 3.21,
                },
            )
        },
    ),
    "support-reply": Scenario(
        "Reply",
        {"message": "Can I return a lamp?", "rules": "Goods can be returned within 30 days."},
        {"Reply to the customer": "Yes, within 30 days."},
        resumes=[["--yes"]],
        output="Yes, within 30 days.",
    ),
    "log-watch": Scenario(
        "Watch",
        {"file": "app.log"},
        {
            "Which is the gravest error": {
                "key": "disk-full",
                "title": "The disk is full",
                "line": "10:02 ERROR no space left on device",
            }
        },
        slack=POSTED,
        output={"key": "disk-full"},
    ),
    "product-texts": Scenario(
        "Catalogue",
        {"products": [{"id": "p1", "name": "Cup", "made of": "clay"}, {"id": "p2", "name": "Lamp", "made of": "tin"}]},
        {
            "Describe this in two sentences": "A useful thing.",
            "Does the text claim": {"true": True, "claim": ""},
        },
        output=["A useful thing.", "A useful thing."],
    ),
    "survey-themes": Scenario(
        "Themes",
        {"answers": ["too dear", "too slow", "I like it"]},
        {
            "Find between three": [{"name": "price", "about": "It costs."}, {"name": "speed", "about": "It waits."}],
            "Reply with the name of the one": "price",
            "Say for each theme": "Most speak of the price.",
        },
        output="Most speak of the price.",
    ),
    "screening": Scenario(
        "Screen",
        {"application": "I have baked bread for ten years.", "post": "Baker"},
        {
            "gpt-4o": {"fits": True, "because": "baked bread"},
            "claude-sonnet-4-5": {"fits": False, "because": "no diploma"},
        },
        resumes=[["--yes"]],
        output="invite",
    ),
    "debate": Scenario(
        "Debate",
        {"claim": "Tea is better than coffee."},
        {
            "Argue for the claim": ("It calms.", "It also wakes, gently."),
            "Argue against the claim": ("It is weak.", "Weak is weak."),
            "Has either side": ({"new": True, "open": "sleep"}, {"new": False, "open": ""}),
            "Sum up in four": "Tea calms, coffee wakes.",
        },
        output="Tea calms, coffee wakes.",
    ),
    "study-cards": Scenario(
        "MakeCards",
        {"chapter": "water.md", "most": 2},
        {
            "cards that ask for one fact": [
                {"question": "When does water boil?", "answer": "At 100 degrees."},
                {"question": "Who found that out?", "answer": "A chemist."},
                {"question": "When does it freeze?", "answer": "At 0 degrees."},
            ],
            'When does water boil?","answer': {"true": True},
            'Who found that out?","answer': {"true": False},
        },
    ),
    "web-check": Scenario(
        "WebCheck",
        {"pages": ["/", "/shop"]},
        web={"GET /": (200, "Welcome"), "GET /shop": (500, "")},
        slack=POSTED,
    ),
    "rollout": Scenario(
        "Rollout",
        {"flag": "dark"},
        web={"PATCH /v2/flags/dark": (200, {}), "GET /errors?flag=dark": (200, {"rate": 0.1})},
        changed={"System.Wait(5m)": "System.Wait(1ms)"},
        yes=["Flags.patch"],
        resumes=[["--event", 'Deploy.Finished={"ok": true}']],
        output="dark is on for all.",
    ),
    "weekly-report": Scenario(
        "WeeklyReport",
        {"week": "2026-01-05"},
        {
            "What changed, in three lines": "Totals of texts.",
            "What did customers ask": "When do you open?",
            "Make the weekly report": "1 order of 40. Totals of texts. Customers asked when we open.",
        },
        slack={"conversations.history": {"messages": [{"ts": "1700000000.000100", "text": "When do you open?"}]}},
        before=together(
            repository,
            database("s.db", "CREATE TABLE orders (week, amount)", "INSERT INTO orders VALUES ('2026-01-05', 40)"),
        ),
        variables={"SALES_DATABASE": "sqlite:///s.db"},
        output="1 order of 40. Totals of texts. Customers asked when we open.",
    ),
    "note-keeper": Scenario(
        "Tidy",
        {"task": "Give every note a title."},
        {
            "Look first, then do this": (
                Uses([("Files_glob", {"pattern": "**/*"}), ("Files_read", {"path": "garage.txt"})]),
                Uses([("Files_read", {"path": "private/diary.txt"})]),
                Uses([("Files_edit", {"path": "garage.txt", "old": "the lights", "new": "# Garage\n\nthe lights"})]),
                "I gave garage.txt a title, and left private/diary.txt alone.",
            )
        },
        yes=["Files.edit"],
        output="I gave garage.txt a title, and left private/diary.txt alone.",
        wrote={"notes/garage.txt": "# Garage\n\nthe lights are out\n"},
    ),
    "shell-assistant": Scenario(
        "Look",
        {"question": "Which file is the largest?"},
        {
            "Answer this by looking": (
                Uses([("Shell_run", {"command": "rm -rf ."})]),
                Uses([("Shell_run", {"command": "ls -S | head -n 1"})]),
                "data.csv",
            )
        },
        yes=["Shell.run"],
        variables={"LANG": "C.UTF-8"},
        output="data.csv",
    ),
    "outline": Scenario(
        "Outline",
        {"subject": "Knots"},
        {
            "Can this be taught": (["Bends", "Hitches"], []),
        },
        output=["Bends", "Hitches"],
    ),
    "cascade": Scenario(
        "Answer",
        {"question": "Why is the sky blue?"},
        {
            "Reply with JSON alone": {"answer": "Air", "sure": 0.4},
            "Answer in full": "Air scatters blue light more than red.",
        },
        variables={"QUICK_MODEL": "openai/gpt-4o-mini", "THOROUGH_MODEL": "anthropic/claude-sonnet-4-5"},
        output="Air scatters blue light more than red.",
    ),
    "meeting-time": Scenario(
        "MeetingTime",
        {"zones": ["Europe/Berlin", "Asia/Tokyo"]},
        {
            "Find a time today": (
                Uses(
                    [
                        (
                            "Clock_convert_time",
                            {
                                "source_timezone": "Europe/Berlin",
                                "time": "09:00",
                                "target_timezone": "Asia/Tokyo",
                            },
                        )
                    ]
                ),
                {"found": True, "utc": "08:00", "local": {"Europe/Berlin": "09:00", "Asia/Tokyo": "17:00"}},
            )
        },
        yes=["Clock.convert_time"],
        output="08:00 UTC",
    ),
    "dependency-updates": Scenario(
        "Update",
        {"package": "flask"},
        {
            "Give the whole file with": "flask==2.1",
            "Give the whole file, changed": ("VERSION = 'old'", "VERSION = '2.1'"),
        },
        resumes=[["--yes"]],
        output="flask is updated.",
        wrote={"project/requirements.txt": "flask==2.1", "project/app.py": "VERSION = '2.1'"},
    ),
    "moderation": Scenario(
        "Moderate",
        {"id": "7", "post": "My shop has nice cups."},
        {"Does the post break": {"breaks": 0.5, "why": "perhaps advertising"}},
        {"PUT /api/posts/7/hidden": (204, "")},
        slack=POSTED,
        resumes=[["--event", 'Slack.Reaction={"reaction": "x"}']],
        output="hidden",
    ),
    "shopping-list": Scenario(
        "ShoppingList",
        models={"simple meals that can": "Rice with beans", "What must be bought": "onions\ntomatoes"},
        changed={"embedded/smollm2": "openai/gpt-4o-mini"},
        output="onions\ntomatoes",
        wrote={"kitchen/list.txt": "onions\ntomatoes\n"},
    ),
    "changelog-check": Scenario(
        "ChangelogCheck",
        models={"Would somebody who uses": {"notice": True, "why": "texts have totals now"}},
        before=repository,
        ends="failed",
    ),
    "alt-texts": Scenario(
        "AltTexts",
        models={
            "Describe the picture": "A grey cat sits on a red roof.",
            "Is this one sentence": {"ok": True, "why": ""},
        },
        output=[{"path": "roof.txt.alt"}],
        wrote={"pictures/roof.txt.alt": "A grey cat sits on a red roof."},
    ),
}
