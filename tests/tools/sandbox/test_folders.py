import os
from pathlib import Path
from tempfile import mkdtemp

from agent_tui.tools.sandbox.folders import StandIns


def test_they_go_at_the_conversations_end_whatever_commands_closed(tmp_path: Path):
    stand_ins = StandIns(tmp_path)
    one, two = stand_ins.of_wall(), stand_ins.of_wall()
    assert (one.scratch, one.home_stand_in) == (two.scratch, two.home_stand_in)
    assert one.gate != two.gate
    (one.home_stand_in / "src").mkdir()
    (one.home_stand_in / "src/x").touch()
    (one.home_stand_in / "src").chmod(0o500)
    stand_ins.remove()
    assert list(tmp_path.iterdir()) == []
    assert not one.gate.exists()
    assert not two.gate.exists()
    assert stand_ins.of_wall().scratch.is_dir()


def test_those_of_a_program_that_was_killed_are_removed_by_the_next(tmp_path: Path):
    other = StandIns(tmp_path)
    kept = other.of_wall()
    (tmp_path / "wall-left/home").mkdir(parents=True)
    (tmp_path / "link").symlink_to(kept.scratch)
    left, young = (Path(mkdtemp(prefix="agent-tui-net-", dir="/tmp")) for _ in range(2))
    (left / "proxy").touch()
    for gate in (left, kept.gate):
        os.utime(gate, (0, 0))
    StandIns(tmp_path).of_wall()
    assert not (tmp_path / "wall-left").exists()
    assert not left.exists()
    assert kept.scratch.is_dir()
    assert kept.gate.is_dir()
    young.rmdir()
    other.remove()
