"""The codes of everything that Halo says is wrong, each with one line (language.md §8, runs.md §2).

Owns the list: a code that is not here is used nowhere, and each has a page in `docs/errors` (tests hold both).
"""

from __future__ import annotations

SYNTAX: dict[str, str] = {
    "NOT_UTF8": "The file holds bytes that are not UTF-8.",
    "FORBIDDEN_CHARACTER": "A NUL stands in the file, or a bidirectional control character outside a string.",
    "BIDI_IN_STRING": "A string holds a bidirectional control character.",
    "FILE_TOO_LARGE": "The file is larger than 16 MiB.",
    "TOO_DEEP": "Brackets, braces, parentheses or `!` nest more than 64 deep.",
    "NAME_TOO_LONG": "A name has more than 200 characters.",
    "UNCLOSED_STRING": "A string is not closed.",
    "BAD_ESCAPE": "A backslash stands before something that it cannot escape.",
    "BAD_NUMBER": "A number cannot be read, or is too large.",
    "SYNTAX": "Something stands where the grammar has no place for it.",
    "BAD_TEMPLATE": "What stands between `{{` and `}}` is no path.",
    "BAD_CONDITION": "A condition in a string does not parse.",
    "NOT_A_LITERAL": "A computed value stands where one must be written down.",
    "NOT_APPLIES_TO_COMPARISON": "`!a == b` means `!(a == b)`.",
}

CHECK: dict[str, str] = {
    "UNKNOWN_NAME": "A name is not declared or bound where it is used.",
    "DUPLICATE_NAME": "Two declarations, parameters or the like share a name.",
    "RESERVED_NAME": "A name belongs to the language.",
    "HIDES_NAME": "An `as` name hides a parameter or a declaration.",
    "WRONG_KIND": "A name stands for another kind of thing than is wanted here.",
    "UNKNOWN_PROVIDER": "There is no such provider.",
    "PROVIDER_BROKEN": "A provider of another package cannot be used.",
    "UNKNOWN_METHOD": "The tool has no such method.",
    "UNKNOWN_ARGUMENT": "There is no such argument.",
    "MISSING_ARGUMENT": "An argument is missing.",
    "REPEATED_ARGUMENT": "An argument is given twice.",
    "EXTRA_ARGUMENT": "There are more arguments than parameters.",
    "UNKNOWN_RULE": "There is no such rule.",
    "BAD_RULE": "A rule's arguments are not what it takes.",
    "UNKNOWN_OPTION": "There is no such option.",
    "BAD_OPTION": "An option's value is not one that it can have.",
    "UNKNOWN_TYPE": "There is no such type.",
    "BAD_MODEL": "A model is not named as `provider/model`.",
    "NOT_EQUIPPED": "`tools:` names a tool that the agent does not equip.",
    "TOOL_NAMES_CLASH": "Two methods offered to a model would have the same name.",
    "PATTERN_MATCHES_NOTHING": "A rule's pattern matches no method.",
    "MISPLACED_ELSE": "`else` is not the last arm, or stands twice.",
    "UNREACHABLE_ARM": "An arm can never be taken.",
    "LOOP_WITHOUT_STAGE": "A loop's agent has no earlier stage to go back to.",
    "ENDLESS_CALL": "A pipeline can only call itself for ever.",
    "ENV_MISPLACED": "`Env` is used where there is no place for it.",
    "SECRET_IN_SOURCE": "A secret seems to stand in the file.",
    "UNUSED": "Something is declared and never used.",
    "EXCLUDED_CALL": "A policy of the pipeline excludes a call that the pipeline makes.",
    "NO_PRICE": "A model without a price stands under a spend limit.",
    "SHELL_PLACE": "A value is inserted in a place of a shell command where it cannot be kept inert.",
    "COMMAND_NOT_LITERAL": "A shell command is computed.",
}

RUN: dict[str, str] = {
    "MODEL_ERROR": "A model did not give an answer that can be used.",
    "MODEL_TIMEOUT": "A model did not answer in time.",
    "TOOL_ERROR": "A tool failed.",
    "TOOL_TIMEOUT": "A tool did not answer in time.",
    "TOOL_ARGUMENTS": "A tool was called with arguments that do not fit.",
    "CHANGED": "A file is not what it was when its change was approved.",
    "DENIED": "A policy refused a call.",
    "APPROVAL_DENIED": "A person refused a call.",
    "SPEND_LIMIT": "A request could have passed a spend limit.",
    "BEYOND_PLAN": "A run would have gone beyond the plan that it is held to.",
    "LOOP_LIMIT": "A loop's condition still held after its last try.",
    "CALL_DEPTH": "Pipeline calls nested too deep.",
    "CALL_LIMIT": "A run made too many pipeline calls.",
    "NOT_A_LIST": "`each` was given something that is not a list.",
    "ARGUMENT_TYPE": "An argument does not fit its parameter's type.",
    "PIPELINE_FAILED": "`System.Fail` was called.",
    "REPLAY_MISMATCH": "A replay asked for something that the recording has no answer for.",
    "RECORDING_INVALID": "A recording, or a paused run's journal, cannot be read.",
    "RESUME_CONFLICT": "A run is being resumed by somebody else, or has ended.",
    "PROGRAM_CHANGED": "The file has changed since a paused run began.",
    "LOCK_MISMATCH": "An MCP server's tools are not those that `halo.lock` keeps.",
    "UNKNOWN_OUTCOME": "Nobody can know whether a call happened before a crash.",
    "CONFIG": "Something that the run needs is missing or wrong.",
}

CODES: dict[str, str] = {**SYNTAX, **CHECK, **RUN}
