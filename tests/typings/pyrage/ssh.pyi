from typing import Self

class Recipient:
    @classmethod
    def from_str(cls, v: str) -> Self: ...

class Identity:
    @classmethod
    def from_buffer(cls, buf: bytes) -> Self: ...
