"""Variables in the settings of servers: ``${NAME}`` and ``${NAME:-else this}``."""

import re
from collections.abc import Collection, Mapping

from agent_tui.errors import ToolError

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def filled_in(text: str, environ: Mapping[str, str], refused: Collection[str]) -> str:
    """`text` with the values of the variables it names.

    Args:
        text: As it stands in a file.
        environ: Where the values are.
        refused: Variables that no server is given: the keys for the model.

    Raises:
        ToolError: A variable is not set, or no server may have it.
    """

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if name in refused:
            raise ToolError(f"${name} holds a key for the model and is given to no server.")
        if name in environ:
            return environ[name]
        if otherwise is None:
            raise ToolError(f"${name} is not set; export it before agent-tui is started.")
        return otherwise

    return _VARIABLE.sub(value, text)
