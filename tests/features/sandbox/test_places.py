"""What at the top of the file system, and which mounted disks, are no part of the system."""

from pathlib import Path

from agent_tui.features.sandbox.places import find_data_places


def make(top: Path, *names: str) -> None:
    for name in names:
        (top / name).mkdir(parents=True)


def names(top: Path, *mounted: str) -> list[str]:
    mount_points = [top / name for name in mounted]
    return [str(path.relative_to(top)) for path in find_data_places(top, mount_points)]


def test_only_folders_of_a_system_are_not_data(tmp_path: Path):
    make(tmp_path, "usr/lib", "etc", "opt", "nix/store", "boot", "var/lib")
    make(tmp_path, "home", "scratch", "work", "net", "Export", ".snapshots")
    (tmp_path / "deploy.key").write_text("decoy")
    data = [".snapshots", "Export", "deploy.key", "home", "net", "scratch", "work"]
    assert names(tmp_path) == data


def test_links_lead_to_data_but_not_to_the_system(tmp_path: Path):
    make(tmp_path, "usr/bin", "boot", "var/home", "opt/disk", "proc/self")
    for name, target in {
        "bin": "usr/bin",
        "sw": "usr/bin",
        "vmlinuz": "boot/vmlinuz",
        "self": ".",
        "all": "var",
        "home": "var/home",
        "data": "opt/disk",
        "loop": "loop",
    }.items():
        (tmp_path / name).symlink_to(target)
    assert names(tmp_path) == ["opt/disk", "var/home"]


def test_disks_below_opt_and_var_are_data_but_those_of_the_standard_are_not(tmp_path: Path):
    disks = ("opt/data", "opt/data/more", "var/data", "var/lib/service/disk", "scratch/disk")
    system = ("var", "var/log", "var/lib", "opt", "usr/local", "boot/efi", "nix/store", "etc/x")
    make(tmp_path, "opt/data/more", *disks[2:], *system[1:2], *system[4:])
    (tmp_path / "opt/file").write_text("text")
    found = names(tmp_path, *disks, *system, "opt/file", "opt/gone")
    assert found == ["opt/data", "scratch", "var/data", "var/lib/service/disk"]


def test_this_machine_hides_homes_and_shares():
    found = find_data_places()
    assert all(path.resolve() in found for path in map(Path, ("/home", "/mnt")) if path.is_dir())
    assert not {Path("/"), Path("/usr"), Path("/etc"), Path("/opt")}.intersection(found)
