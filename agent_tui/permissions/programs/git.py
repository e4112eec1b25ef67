"""Which git commands only look."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.programs.harmless_options import HarmlessOptions

_HARMLESS_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_ASKS_GPG = re.compile(r"%[-+ ]?(?:G|\(\*?(?:signature|if|describe))")
"""Placeholders for which git starts other programs."""


def git_only_reads(arguments: Sequence[str]) -> bool:
    """Whether ``git`` with `arguments` changes nothing and runs nothing it is told to."""
    rest = _without_globals(arguments)
    if not rest or any(_ASKS_GPG.search(argument) for argument in rest):
        return False
    verb, others = rest[0], rest[1:]
    if verb == "tag" and "-l" in others:
        return _LISTING.admits([other for other in others if other != "-l"])
    if verb in ("branch", "tag") and _lists_refs(others):
        return _LISTING.admits(others)
    if verb == "config":
        return _config_only_reads(others)
    if verb == "reflog" and others and others[0].startswith("-"):
        return _LOG.admits(others)
    form = _FORMS.get(verb)
    if form is not None:
        return form.admits(others)
    pair = " ".join(rest[:2])
    form = _PAIR_FORMS.get(pair) if len(rest) > 1 else _ALONE.get(verb)
    return form is not None and form.admits(rest[2:])


def _config_only_reads(arguments: Sequence[str]) -> bool:
    """One name alone is looked up; two would set it, unless an option or verb says look."""
    names = [argument for argument in arguments if not argument.startswith("-")]
    looks = any(argument in _CONFIG_LOOKS for argument in arguments)
    is_lookup = len(names) == 1 and "." in names[0]
    return _CONFIG.admits(arguments) and (looks or names[:1] in (["list"], ["get"]) or is_lookup)


def git_folders(arguments: Sequence[str | None]) -> list[str]:
    """The folders ``git -C`` names before the verb."""
    found: list[str] = []
    index = 0
    while index + 1 < len(arguments):
        option, value = arguments[index], arguments[index + 1]
        if option is None or not option.startswith("-"):
            break
        if option == "-C":
            found += [value] if value else []
            index += 1
        index += 1
    return found


def _without_globals(arguments: Sequence[str]) -> list[str]:
    rest = list(arguments)
    while rest:
        if rest[0] in _HARMLESS_GLOBALS:
            del rest[0]
        elif rest[0] == "-C" and len(rest) > 1:
            del rest[:2]
        else:
            break
    return rest


def _lists_refs(arguments: Sequence[str]) -> bool:
    """Whether an option makes ``git branch`` or ``git tag`` take names as patterns to list."""
    return any(argument.partition("=")[0] in _LISTERS for argument in arguments)


_LISTERS = frozenset(
    {"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}
)
_LISTING = HarmlessOptions(
    "avrniq",
    "",
    "list contains no-contains merged no-merged points-at all remotes sort format color "
    "no-color column no-column verbose ignore-case abbrev omit-empty",
)
_LOG_LONGS = """
    abbrev abbrev-commit after all anchored ancestry-path author author-date-order before boundary
    branches cached cc check cherry cherry-mark cherry-pick color color-moved color-words
    combined-all-paths committer compact-summary cumulative date date-order decorate
    decorate-refs decorate-refs-exclude diff-algorithm diff-filter diff-merges dirstat do-walk
    encoding exclude exit-code expand-tabs find-copies find-copies-harder find-object
    find-renames first-parent fixed-strings follow format full-diff full-history full-index
    function-context glob graph grep grep-reflog histogram ignore-all-space ignore-blank-lines
    ignore-case ignore-cr-at-eol ignore-matching-lines ignore-missing ignore-space-at-eol
    ignore-space-change ignore-submodules indent-heuristic inter-hunk-context invert-grep
    irreversible-delete left-only left-right log-size max-count max-parents merge-base merges
    min-parents minimal name-only name-status no-abbrev-commit no-commit-id no-color no-color-moved
    no-decorate no-ext-diff no-indent-heuristic no-merges no-notes no-patch no-prefix
    no-relative no-renames no-textconv no-walk not notes numstat objects oneline parents
    patch patch-with-raw patch-with-stat patience perl-regexp pickaxe-all pickaxe-regex pretty
    quiet raw reflog regexp-ignore-case relative relative-date remotes remove-empty
    rename-empty reverse right-only root shortstat show-linear-break show-notes show-pulls
    simplify-by-decoration simplify-merges since since-as-filter skip source src-prefix
    dst-prefix line-prefix staged stat summary tags text topo-order unified until walk-reflogs
    word-diff word-diff-regex ws-error-highlight
"""
_LOG_VERBS = (
    *("log", "diff", "show", "whatchanged", "cherry"),
    *("diff-tree", "diff-index", "diff-files"),
)
_LOG = HarmlessOptions("rpusbwMCBRzaWcmtgiEPF1234567890D", "nUSGLlX", _LOG_LONGS)
_FORMS: Mapping[str, HarmlessOptions] = MappingProxyType(
    {
        "status": HarmlessOptions(
            "sbvz",
            "u",
            "short branch porcelain untracked-files ignored ignore-submodules long verbose "
            "show-stash ahead-behind no-ahead-behind column no-column renames no-renames "
            "find-renames",
        ),
        **dict.fromkeys(_LOG_VERBS, _LOG),
        "range-diff": _LOG,
        "shortlog": HarmlessOptions("snec", "w", f"{_LOG_LONGS} summary numbered email group"),
        **dict.fromkeys(
            ("blame", "annotate"),
            HarmlessOptions(
                "wesltfnpcbkMC0123456789",
                "LS",
                "date porcelain line-porcelain root show-stats show-name show-number show-email "
                "since ignore-rev abbrev color-lines color-by-age first-parent minimal reverse",
            ),
        ),
        "ls-files": HarmlessOptions(
            "cdmoskzutvf",
            "x",
            "others exclude-standard modified deleted cached stage unmerged killed error-unmatch "
            "full-name abbrev debug eol ignored directory no-empty-directory exclude "
            "recurse-submodules deduplicate format",
        ),
        "ls-tree": HarmlessOptions(
            "drtlz", "", "name-only name-status full-tree full-name long abbrev format object-only"
        ),
        "cat-file": HarmlessOptions("tspe"),
        "rev-parse": HarmlessOptions(
            "q",
            "",
            "abbrev-ref show-toplevel verify short is-inside-work-tree is-inside-git-dir "
            "is-bare-repository is-shallow-repository git-dir absolute-git-dir HEAD show-prefix "
            "symbolic-full-name symbolic show-cdup git-common-dir git-path all branches tags "
            "remotes quiet show-object-format show-superproject-working-tree show-ref-format "
            "local-env-vars flags no-flags revs-only no-revs default since until",
        ),
        "rev-list": HarmlessOptions(
            "0123456789", "n", f"{_LOG_LONGS} count disk-usage missing filter no-commit-header"
        ),
        "describe": HarmlessOptions(
            "",
            "",
            "tags always dirty broken abbrev long all match exclude contains candidates "
            "exact-match first-parent",
        ),
        "branch": HarmlessOptions(
            "avrq", "", "all remotes show-current verbose color no-color sort format column", 0
        ),
        "tag": HarmlessOptions("ln0123456789", "", "sort format column color", 0),
        "merge-base": HarmlessOptions("a", "", "all is-ancestor octopus independent fork-point"),
        "grep": HarmlessOptions(
            "niIwlLcEFPGhHvopqWz0123456789r",
            "ABCem",
            "line-number ignore-case count cached files-with-matches name-only "
            "files-without-match only-matching word-regexp invert-match extended-regexp "
            "fixed-strings perl-regexp basic-regexp show-function function-context heading break "
            "column max-depth color no-color and or not all-match context after-context "
            "before-context text full-name recursive max-count quiet threads",
        ),
        "for-each-ref": HarmlessOptions(
            "", "", "count sort format points-at merged no-merged contains no-contains ignore-case"
        ),
        "show-ref": HarmlessOptions(
            "dsq", "", "head heads tags branches dereference hash verify abbrev quiet exists"
        ),
        "symbolic-ref": HarmlessOptions("q", "", "short quiet", 1),
        "name-rev": HarmlessOptions("", "", "tags refs all name-only always undefined exclude"),
        "count-objects": HarmlessOptions("vH", "", "verbose human-readable", 0),
        "check-ignore": HarmlessOptions("vnqz", "", "verbose non-matching quiet no-index"),
        "check-attr": HarmlessOptions("az", "", "all cached"),
        "show-branch": HarmlessOptions("ar", "", "all remotes current list sha1-name no-name"),
        "var": HarmlessOptions(most=1),
        "--version": HarmlessOptions(most=0),
        "version": HarmlessOptions("", "", "build-options", 0),
        "--exec-path": HarmlessOptions(most=0),
        "--help": HarmlessOptions(most=0),
        "help": HarmlessOptions(most=0),
    }
)
_CONFIG = HarmlessOptions(
    "lz",
    "",
    "list get get-all get-regexp get-urlmatch show-origin show-scope name-only global local "
    "system worktree null type bool int path default includes no-includes",
)
_CONFIG_LOOKS = frozenset({"-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"})
_PAIR_FORMS: Mapping[str, HarmlessOptions] = MappingProxyType(
    {
        "stash list": _LOG,
        "stash show": HarmlessOptions(_LOG.letters, _LOG.values, f"{_LOG_LONGS} include-untracked"),
        "remote -v": HarmlessOptions(most=0),
        "remote --verbose": HarmlessOptions(most=0),
        "remote get-url": HarmlessOptions("", "", "all push"),
        "worktree list": HarmlessOptions("vz", "", "porcelain verbose", 0),
        "submodule status": HarmlessOptions("q", "", "cached recursive quiet"),
        "submodule summary": HarmlessOptions("q", "", "cached files"),
        "reflog show": _LOG,
        "reflog exists": HarmlessOptions(),
        "notes list": HarmlessOptions(most=1),
        "notes show": HarmlessOptions(most=1),
        "bisect log": HarmlessOptions(most=0),
    }
)
_ALONE: Mapping[str, HarmlessOptions] = MappingProxyType(
    {verb: HarmlessOptions() for verb in ("remote", "reflog")}
)
"""Verbs that only look when nothing follows."""
