"""Sizes of files, for people."""


def size_text(size_bytes: int) -> str:
    """`size_bytes` in decimal units with up to three digits: ``98.4 MB``."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 99.95 else f"{size:.1f} {unit}"
