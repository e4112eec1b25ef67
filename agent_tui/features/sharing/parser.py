"""The command lines of ``agent-tui sessions share``, ``push`` and ``pull``."""

import argparse
from pathlib import Path

from agent_tui.cli.verbs import AddSessionVerb
from agent_tui.sessions.store import SessionStore

_SHARE = """\
Without an option, show the remote, your answer and the chosen sessions.
A session holds everything you typed and pasted, everything that tools read and
printed, and paths with your user name. Keys of known shapes are removed, other
secrets are not. What is pushed to a public remote cannot be taken back.
With --json:
  {"remote", "address", "allowed", "recipients", "sessions"}
"allowed" is "private", "encrypted" or empty."""
_PUSH = """\
SESSION chooses a session for this push and the following ones; without one,
the sessions that were chosen before are pushed. A push needs one of
  agent-tui sessions share --private          the remote is private
  agent-tui sessions share --encrypt-to KEY   whoever has the key can read it
  --public                                    everybody may read it
Keys are removed as in exports. The exit code is 1 if a session failed.
With --json:
  [{"id", "status", "entries", "keysRemoved", "bytes", "files",
    "filesWithKeys", "error"}]
"status" is "pushed", "unchanged", "failed" or, with --dry-run, "to push"."""
_PULL = """\
Without SESSION, all sessions of the project at the remote are pulled. Your own
entries never change. No mode, goal, hook, model or folder is taken from a
pulled session. The exit code is 1 if a session failed.
With --json:
  [{"id", "status", "path", "entries", "by", "files", "hasBranched",
    "differing", "waiting", "unreadable", "error"}]
"status" is "new", "updated", "unchanged", "skipped" or "failed". "differing"
counts your entries that stayed although the remote has others with their ids,
"waiting" entries whose predecessor is missing."""


def add_sharing(add: AddSessionVerb) -> None:
    """Add the three subcommands with `add`."""
    share = add("share", _share, "show and change what may be shared of this project", _SHARE)
    push = add("push", _push, "push chosen sessions to the project's git remote", _PUSH)
    pull = add("pull", _pull, "pull sessions from the project's git remote", _PULL)
    for one in (share, push, pull):
        one.add_argument("--remote", metavar="NAME", help="git remote (default: origin)")
        one.add_json()
    either = share.add_mutually_exclusive_group()
    either.add_argument("--private", action="store_true", help="declare that the remote is private")
    either.add_argument(
        "--encrypt-to",
        action="append",
        metavar="KEY",
        dest="recipients",
        help="encrypt to this public key of age or SSH; repeatable",
    )
    either.add_argument("--off", action="store_true", help="forget your answer")
    share.add_argument("--stop", metavar="SESSION", help="no longer push a session")
    share.add_argument("--new-key", action="store_true", help="create a key of age for pulling")
    push.add_argument(
        "sessions", nargs="*", metavar="SESSION", help="session file, id, start of an id, or name"
    )
    push.add_argument(
        "--all",
        action="store_true",
        dest="is_all",
        help="choose all sessions that began in this clone",
    )
    push.add_argument("--public", action="store_true", help="push even if everybody can read it")
    push.add_argument(
        "--with-files",
        action="store_true",
        dest="with_files",
        help="push the contents that edits replaced and made, too",
    )
    push.add_argument(
        "--dry-run", action="store_true", dest="only_plans", help="show what would be pushed"
    )
    for one in (share, push):
        one.add_argument("--yes", action="store_true", dest="is_sure", help="do not ask")
    pull.add_argument(
        "sessions", nargs="*", metavar="SESSION", help="id of a session, or its start"
    )
    pull.add_argument(
        "--identity",
        type=Path,
        metavar="FILE",
        help="key to decrypt with (default: your key of age, your SSH keys)",
    )


def _share(arguments: argparse.Namespace, store: SessionStore) -> int:
    from agent_tui.features.sharing.verbs import share  # git and processes: only where needed

    return share(arguments, store)


def _push(arguments: argparse.Namespace, store: SessionStore) -> int:
    from agent_tui.features.sharing.verbs import push

    return push(arguments, store)


def _pull(arguments: argparse.Namespace, store: SessionStore) -> int:
    from agent_tui.features.sharing.verbs import pull

    return pull(arguments, store)
