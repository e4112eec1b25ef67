from tests.ui.conftest import styles_are_parsed_once

__all__ = ["styles_are_parsed_once"]
