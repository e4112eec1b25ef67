"""The keys of the screen, as ``/keys`` and ``/help`` show them."""

from agent_tui.commands.core.pages import PageSection

KEYS = (
    PageSection(
        "Writing",
        (
            ("enter", "send; while a turn runs: queue"),
            ("shift+enter, ctrl+j, \\ enter", "new line; alt+enter and ctrl+enter too"),
            ("/ @ !", "commands, files, run a shell command (!! keeps it from the model)"),
            ("tab", "complete; in a menu: take what is marked"),
            ("up, down", "earlier prompts, from the first or last line; in a menu: move"),
            ("ctrl+r", "search earlier prompts"),
            ("ctrl+g", "write in $EDITOR"),
            ("alt+up", "take queued messages back"),
            ("alt+b, alt+f", "a word left or right"),
            ("ctrl+w, ctrl+u, ctrl+k", "delete a word, to the start, to the end of the line"),
            ("ctrl+_", "undo"),
        ),
    ),
    PageSection(
        "Running",
        (
            ("ctrl+p", "find any command or action; in a menu: up, as ctrl+n is down"),
            ("ctrl+v", "attach the image that is on the clipboard"),
            ("?", "all commands and keys, on an empty prompt"),
            ("esc", "close the menu, else stop what runs and keep the partial reply"),
            ("esc esc", "go back to an earlier message, while nothing runs (/tree)"),
            ("shift+tab", "next permission mode: ask, accept-edits, plan, full"),
            (
                "y a p r n e",
                "answer an approval, once nothing was typed for a second; so do up, down, "
                "enter and 1 to 6; j, k scroll it",
            ),
        ),
    ),
    PageSection(
        "Reading",
        (
            ("pageup, pagedown", "scroll the chat"),
            ("ctrl+home, ctrl+end", "first and last message"),
            ("ctrl+l", "back to the newest line"),
            ("ctrl+f", "search the chat"),
            ("ctrl+o", "unfold or fold tool output and summaries; on the mark of a paste: open it"),
            ("ctrl+t", "show or hide thinking"),
            ("drag, then ctrl+c", "select and copy; /scrollback hands all of it to the terminal"),
            ("alt+m", "leave the mouse to the terminal, or take it back (/mouse)"),
        ),
    ),
    PageSection(
        "Leaving",
        (
            ("ctrl+c", "clear the prompt; twice leaves"),
            ("ctrl+d", "leave, on an empty prompt"),
            ("ctrl+q", "leave at once"),
            ("ctrl+z", "suspend; fg in the shell comes back"),
        ),
    ),
)
