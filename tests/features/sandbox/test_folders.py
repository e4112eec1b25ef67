from pathlib import Path

from agent_tui.features.sandbox.folders import StandIns, write_versions


def test_they_go_at_the_conversations_end_whatever_commands_closed(tmp_path: Path):
    stand_ins = StandIns(tmp_path)
    one, two = stand_ins.of_wall(), stand_ins.of_wall()
    assert one.scratch == two.scratch
    assert one.home_stand_in != two.home_stand_in
    assert one.gate != two.gate
    (one.home_stand_in / "src").mkdir()
    (one.home_stand_in / "src/x").touch()
    (one.home_stand_in / "src").chmod(0o500)
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (one.scratch / "a/b").mkdir(parents=True)
    (one.scratch / "a/b/link").symlink_to(outside)
    for closed in ("a/b", "a", "../gates"):
        (one.scratch / closed).chmod(0)
    stand_ins.remove()
    assert list(tmp_path.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o500
    assert not one.gate.exists()
    assert not two.gate.exists()
    assert stand_ins.of_wall().scratch.is_dir()


def test_those_of_a_program_that_was_killed_are_removed_by_the_next(tmp_path: Path):
    other = StandIns(tmp_path)
    kept = other.of_wall()
    (tmp_path / "wall-left/gates").mkdir(parents=True)
    (tmp_path / "wall-left/gates/agent-tui-gate-of-nobody").touch()
    (tmp_path / "wall-left/gates/other").touch()
    (tmp_path / "link").symlink_to(kept.scratch)
    StandIns(tmp_path).of_wall()
    assert not (tmp_path / "wall-left").exists()
    assert kept.scratch.is_dir()
    other.remove()


def test_nothing_that_a_command_puts_in_the_place_of_a_version_stops_the_next_command(
    tmp_path: Path,
):
    versions = {tmp_path / ".env": (b"A=1\n", 0o640)}
    ((_, file),) = write_versions(versions, tmp_path)
    key = tmp_path / "key"
    key.write_text("secret")
    for put in (lambda: (file / "x").mkdir(parents=True), lambda: file.symlink_to(key)):
        file.unlink()
        put()
        assert write_versions(versions, tmp_path) == ((tmp_path / ".env", file),)
        assert not file.is_symlink()
        assert file.read_text() == "A=1\n"
    assert key.read_text() == "secret"
