"""Decides whether a tool call may run: the mode, the rules, protected files, shell commands.

Nothing here runs a command; it only reads its text. ``docs/pages/permissions.md`` follows a command
through the files.

* `engine` decides: a tool's `Intent` goes in, a `Verdict` (allow, ask, deny) comes out.
* `command_judge` looks at each part of a shell command and says what is known of it.
* `shell/` takes the text apart: `parts` (the commands of a script), `words` (what each word is
  known to be), `wrappers` (``env``, ``xargs``, ``bash -c``), `scripts` (``sed``, ``find``) and
  `checks` (text that is refused, because bash could read it otherwise).
* `programs/` knows single programs: which only look (`read_only`, `git`), which lose work or change
  the machine (`destruction`, `dangers`).
* `rules` reads and matches rules, and keeps those of a project in a file.
* `protected_paths` knows the files that always ask, `named_paths` the files a word may mean.
* `trust` and `trust_file`: which folders may give instructions, `project_files` what those are,
  and `git_settings` whether a repository could make git run something.
* `decision_log` keeps what was decided, for ``/permissions``.
"""
