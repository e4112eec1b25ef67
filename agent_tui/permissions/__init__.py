"""Decides whether a tool call may run: the mode, the rules, protected files, shell commands.

Nothing here runs a command; it only reads its text. ``docs/pages/permissions.md`` follows a command
through the files.

* `engine` decides: a tool's `Intent` goes in, a `Verdict` (allow, ask, deny) comes out. What is in
  force then is a `Policy`; by kind of call, `file_verdicts`, `host_verdicts` and
  `command_verdicts` apply it.
* `command_judge` examines each part of a shell command.
* `shell/` splits the text: `parts` (the commands of a script), `words` (what each word is
  known to be), `wrappers` (``env``, ``xargs``, ``bash -c``) and `checks` (refuses text that bash
  could read differently).
* `programs/` knows single programs: which only read (`read_only`), which lose work or change the
  machine (`destruction`, `dangers`), which files one runs (`run_files`).
* `rules` reads and matches rules, and stores those of a project in a file.
* `protected_paths` knows the files that always ask, `named_paths` the files a word may mean.
* `trust`: which folders may give instructions; `project_files`: what those are, and whether the
  repository could make git run something.
* `decision_log` stores what was decided, for ``/permissions``.
"""
