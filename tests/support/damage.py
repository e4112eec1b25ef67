"""Ways in which a file of lines gets damaged, drawn by a seeded chance."""

import random
from collections.abc import Callable

_Damage = Callable[[list[bytes], random.Random], list[bytes]]


def damaged(lines: list[bytes], chance: random.Random) -> bytes:
    """`lines` (without their ends) as a file, with one to four damages."""
    broken = list(lines)
    for _ in range(chance.choice((1, 1, 2, 4))):
        broken = chance.choice(_DAMAGES)(broken, chance)
    end = b"" if chance.random() < 0.2 else b"\n"
    return b"\n".join(broken) + end


def _somewhere(lines: list[bytes], chance: random.Random) -> int:
    return chance.randrange(len(lines)) if lines else 0


def _cut(lines: list[bytes], chance: random.Random) -> list[bytes]:
    data = b"\n".join(lines)
    return data[: chance.randint(0, len(data))].split(b"\n")


def _flip_bits(lines: list[bytes], chance: random.Random) -> list[bytes]:
    data = bytearray(b"\n".join(lines) or b"x")
    for _ in range(chance.randint(1, 5)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data).split(b"\n")


def _overwrite(lines: list[bytes], chance: random.Random) -> list[bytes]:
    data = b"\n".join(lines)
    at = chance.randint(0, len(data))
    piece = chance.choice((chance.randbytes(30), b"\x00" * 512, b"\xff\xfe", b"\xe2\x80\xa8"))
    return (data[:at] + piece + data[at + len(piece) :]).split(b"\n")


def _swap(lines: list[bytes], chance: random.Random) -> list[bytes]:
    at, other = _somewhere(lines, chance), _somewhere(lines, chance)
    lines[at], lines[other] = lines[other], lines[at]
    return lines


def _shuffle(lines: list[bytes], chance: random.Random) -> list[bytes]:
    chance.shuffle(lines)
    return lines


def _repeat(lines: list[bytes], chance: random.Random) -> list[bytes]:
    at = _somewhere(lines, chance)
    return [*lines[:at], lines[_somewhere(lines, chance)], *lines[at:]]


def _remove(lines: list[bytes], chance: random.Random) -> list[bytes]:
    at = _somewhere(lines, chance)
    return lines[:at] + lines[at + chance.randint(1, 3) :] or [b""]


def _interleave(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """As two writers do: the beginning of one line, another line, the rest of the first."""
    at = _somewhere(lines, chance)
    cut = chance.randint(0, len(lines[at]))
    other = lines[_somewhere(lines, chance)]
    return [*lines[:at], lines[at][:cut] + other, lines[at][cut:], *lines[at + 1 :]]


def _glue(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """As a program does that goes on behind a line that was cut off."""
    at = _somewhere(lines, chance)
    cut = chance.choice((chance.randint(0, len(lines[at])), len(lines[at])))
    return [*lines[:at], lines[at][:cut] + b"".join(lines[at + 1 : at + 2]), *lines[at + 2 :]]


def _other_line_ends(lines: list[bytes], chance: random.Random) -> list[bytes]:
    end = chance.choice((b"\r", b" \t", b"\x00", "\u2028".encode()))
    return [line + end if chance.random() < 0.7 else line for line in lines]


def _mark_at_the_beginning(lines: list[bytes], chance: random.Random) -> list[bytes]:
    mark = chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x00" * 4096, b"\n\n", b"\x1f\x8b\x08"))
    return (mark + b"\n".join(lines)).split(b"\n")


def _foreign_line(lines: list[bytes], chance: random.Random) -> list[bytes]:
    head = b'{"type":"message","id":"0000000a","parentId":"00000001","timestamp":"t","message":'
    foreign = (
        b"x" * 200_000,
        b"[" * 50_000,
        b'{"a":' * 5_000,
        head + b'{"role":"assistant","content":[' + b'{"type":"z"},' * 60 + b'{"type":"z"}]}}',
        head + b'{"role":"user","content":"a"},"x":' + b"[" * 300 + b"]" * 300 + b"}",
        b"null",
        b"1e999",
        b"{}",
        b'"type"',
        b'{"type":"session","version":3,"id":"again","timestamp":"t","cwd":"/other"}',
        b'{"type":"session","version":' + chance.choice((b"-1", b'"3"', b"1e999", b"{}")) + b"}",
        b'{"type":"session","compaction":{"readFiles":' + str([1] * 60).encode() + b"}}",
    )
    at = _somewhere(lines, chance)
    replaced = chance.random() < 0.3
    return [*lines[:at], chance.choice(foreign), *lines[at + replaced :]]


def _other_values(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Values of wrong types, numbers that are none, lone surrogates, in place of sound ones."""
    found = (
        b'"user"',
        b'"text"',
        b'"c1"',
        b'"c3"',
        b"null",
        b'"message"',
        b'"stop"',
        b"10",
        b'"id"',
    )
    odd = (b"1e999", b"-1", b"null", b"[]", b"{}", b'"\\ud83d"', b"true", b'""', b"NaN", b"9" * 500)
    data = b"\n".join(lines)
    data = data.replace(chance.choice(found), chance.choice(odd), chance.randint(1, 4))
    return data.split(b"\n")


def _other_ids(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Duplicate ids, missing parents, and entries that are their own ancestors."""
    pieces = b"\n".join(lines).split(b'Id":"')
    if len(pieces) < 3:
        return lines
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(1, len(pieces)), chance.randrange(1, len(pieces))
        stolen = chance.choice((pieces[other].partition(b'"')[0], b"ffffffff", b""))
        pieces[at] = stolen + b'"' + pieces[at].partition(b'"')[2]
    data = b'Id":"'.join(pieces)
    if chance.random() < 0.5:
        ids = data.split(b'"id":"')
        at, other = chance.randrange(1, len(ids)), chance.randrange(1, len(ids))
        ids[at] = ids[other][:8] + ids[at][8:]
        data = b'"id":"'.join(ids)
    return data.split(b"\n")


_DAMAGES: tuple[_Damage, ...] = (
    _cut,
    _flip_bits,
    _overwrite,
    _swap,
    _shuffle,
    _repeat,
    _remove,
    _interleave,
    _glue,
    _other_line_ends,
    _mark_at_the_beginning,
    _foreign_line,
    _other_values,
    _other_ids,
)
