"""What each wall promises, by topic, with the probes that test it.

python -m tests.support.escapes.promises    # writes the table in SECURITY.md anew
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.features.sandbox.plan import Backend

Promise: TypeAlias = Literal["held", "watched", "text", "open"]
"""Held by the kernel; found and put aside after the command; left to the rules that read the
command's text; not held at all."""

SECURITY = Path(__file__).parents[3] / "SECURITY.md"
BEGIN, END = "<!-- sandbox: begin -->", "<!-- sandbox: end -->"
_WORDS: dict[Promise, str] = {
    "held": "**held**",
    "watched": "put aside after the command",
    "text": "text rules only",
    "open": "not held",
}


@dataclass(frozen=True, slots=True)
class Topic:
    """Something a command might do, and what each wall makes of it.

    Args:
        title: What it is, after "A command cannot".
        bubblewrap: What that wall promises.
        landlock: What that one promises.
        probes: The names of the probes.
        since: The version of Landlock from which on it is held; 0 for each.
    """

    title: str
    bubblewrap: Promise
    landlock: Promise
    probes: tuple[str, ...]
    since: int = 0

    def promise(self, backend: Backend) -> Promise:
        """What the wall promises."""
        return self.bubblewrap if backend == "bubblewrap" else self.landlock


TOPICS = (
    Topic(
        "change files outside the working folders",
        "held",
        "held",
        (
            *("write_outside", "write_home", "write_home_folder", "write_tmp", "write_etc"),
            *("write_program", "write_interpreter", "append_outside", "truncate_outside"),
            *("truncate_by_open", "remove_outside", "make_folder_outside", "make_pipe_outside"),
            *("make_link_outside", "move_out", "move_in", "write_through_link"),
            *("write_through_hard_link", "write_through_parent", "write_through_proc_root"),
            *("write_git_attributes_of_all", "rename_workspace"),
        ),
    ),
    Topic(
        "change the mode, times or attributes of your files elsewhere",
        "held",
        "open",
        ("change_mode", "change_times", "change_attribute"),
    ),
    Topic(
        "read keys, or anything else in home folders, shares and other disks but toolchains",
        "held",
        "held",
        (
            *("read_key", "read_key_by_link", "read_key_by_hard_link", "read_key_of_new_program"),
            *("read_own_settings", "read_key_by_handle", "list_home", "read_shadow"),
            *("read_environ", "read_handles", "read_handles_of_first"),
        ),
    ),
    Topic(
        "find out whether a file in your home folder exists and its size, or watch the names there",
        "held",
        "open",
        ("see_names_at_home", "watch_names_at_home"),
    ),
    Topic("read `.env` and key files in the working folders", "held", "text", ("read_env_file",)),
    Topic(
        "change git's hooks or configuration, or put another `.git` in its place",
        "held",
        "watched",
        (
            *("write_hook", "add_hook", "enable_hook", "write_git_config", "replace_git_config"),
            *("remove_git_config", "set_git_config", "replace_hooks", "rename_git"),
            *("rename_repository", "rename_folder_around", "exchange_git", "link_hooks"),
            "write_worktree_pointer",
        ),
    ),
    Topic(
        "leave new files that programs outside obey, such as a repository with hooks",
        "watched",
        "watched",
        ("make_new_repository",),
    ),
    Topic(
        "make or enter namespaces, mount, or change the root folder",
        "held",
        "held",
        (
            *("uncover_git_config", "reopen_git_config", "clear_read_only", "unshare_user"),
            *("unshare_mounts", "clone_user", "clone3_user", "mount_folder", "clone_mount"),
            *("open_file_system", "enter_mounts_of_first", "enter_network_outside"),
            *("change_root", "turn_root"),
        ),
    ),
    Topic(
        "read the memory, environment or files of other programs, or trace them",
        "held",
        "held",
        (
            *("read_root_of_process", "read_root_of_first", "read_folder_of_process"),
            *("read_environ_of_process", "read_environ_of_parents", "read_handle_of_process"),
            *("read_memory_of_process", "read_memory_by_call", "trace_process"),
            *("take_handle_of_process", "compare_processes"),
        ),
    ),
    Topic(
        "take over the process that starts commands",
        "held",
        "held",
        (
            *("trace_keeper", "write_memory_of_keeper", "open_handles_of_keeper"),
            *("take_handle_of_keeper", "write_memory_of_others"),
        ),
    ),
    Topic(
        "stop or end other programs",
        "held",
        "held",
        ("end_process", "end_process_by_handle", "stop_process"),
        since=6,
    ),
    Topic("limit what other programs may use", "held", "held", ("limit_process",)),
    Topic(
        "see the arguments of other programs, or slow those down",
        "held",
        "open",
        ("read_arguments_of_process", "slow_process"),
    ),
    Topic(
        "reach Docker, D-Bus, ssh-agent, the display, or another named socket",
        "held",
        "held",
        (
            *("reach_docker", "reach_agent", "reach_bus", "reach_display", "reach_abstract"),
            *("reach_log", "reach_log_by_pair", "reach_log_by_raw_pair"),
        ),
    ),
    Topic(
        "reach another machine but through the gate, or make unusual sockets",
        "held",
        "held",
        (
            *("reach_udp", "reach_other_machine", "reach_tcp_by_address", "untie_socket"),
            *("ask_resolver", "make_packet_socket", "make_raw_socket", "make_cipher_socket"),
            *("make_host_socket", "make_device_events_socket", "change_routes"),
        ),
    ),
    Topic("reach servers on this machine's loopback", "held", "open", ("reach_tcp",)),
    Topic("use `/dev/shm` together with other programs", "held", "open", ("write_shm", "read_shm")),
    Topic(
        "use System V memory, semaphores or message queues of others, or the kernel's keyrings",
        "held",
        "held",
        (
            *("read_system_v_memory", "take_semaphore", "make_message_queue"),
            *("read_keyring", "add_to_keyring"),
        ),
    ),
    Topic(
        "type into a terminal, or write to one",
        "held",
        "held",
        (
            *("type_into_own_terminal", "type_into_terminal", "write_to_terminal"),
            "open_own_terminal",
        ),
    ),
    Topic(
        "set anything of the kernel, read its memory, or open disks",
        "held",
        "held",
        (
            *("set_core_pattern", "set_panic", "press_keys", "read_kernel_memory"),
            *("open_memory_device", "open_disk", "open_disk_by_name", "make_disk", "write_sys"),
            *("make_control_group", "read_kernel_log", "load_bpf", "watch_performance"),
            *("handle_faults", "make_ring", "load_kernel", "load_module", "restart_machine"),
            *("set_clock", "set_name_of_machine", "call_by_other_table"),
        ),
    ),
    Topic(
        "gain rights, also where you are root",
        "held",
        "held",
        ("become_root", "keep_capabilities", "gain_rights", "lift_filter"),
    ),
    Topic("run on after its session", "held", "held", ("live_on",)),
    Topic("lock a file that it can read", "open", "open", ("lock_outside",)),
)


def table() -> str:
    """The table of SECURITY.md."""
    rows = [
        f"| {topic.title} | {_WORDS[topic.bubblewrap]} | {_WORDS[topic.landlock]}"
        + (f" (Linux {_LINUX_OF[topic.since]} and later)" if topic.since else "")
        + " |"
        for topic in TOPICS
    ]
    head = ["| A command inside cannot | bubblewrap | Landlock |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""])


_LINUX_OF = {6: "6.12"}


def with_table(page: str) -> str:
    """`page` with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def main() -> None:
    """Write the table anew."""
    SECURITY.write_text(with_table(SECURITY.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
