"""What `signoff --help` lists: the commands by what people come for, each with a line that fits a terminal."""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Set up": {
        "demo": "See it work: a scripted agent asks you five things.",
        "init": "Write signoff.toml: tokens, the first approver, a place to ask.",
        "serve": "Run the gateway.",
        "doctor": "Say what is wrong, and how to mend it.",
        "drill": "Rehearse whether questions reach people.",
        "key": "Make, list and revoke the keys of agents and people.",
        "hook": "List who is told by webhooks, and try one.",
        "bench": "Measure it on this machine.",
    },
    "Ask": {
        "run": "Ask about a command, and run it once it is approved.",
        "ask": "Ask about a command, a script or a tool call.",
        "check": "Judge an action; nobody is asked.",
    },
    "Answer": {
        "console": "Print a link by which a person answers in the web console.",
        "pending": "List what waits for an answer.",
        "approve": "Approve a question by its id.",
        "deny": "Deny one, with a reason for the agent.",
        "why": "Tell why it was asked, and what decided.",
        "stop": "Stop a session and all that it asks.",
        "actions": "List and answer what was kept for a later yes.",
    },
    "Allow in advance": {
        "grants": "List what is allowed in advance.",
        "revoke": "End a grant at once.",
        "allowlist": "List and change the allowlist in a PostgreSQL store.",
        "yolo": "Ask nothing in a session for a while.",
        "policy": "Try other rules on what was asked, and list the rules.",
    },
}
"""By heading: each command and what it is for."""
