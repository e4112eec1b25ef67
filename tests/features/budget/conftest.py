from tests.agent.conftest import stage

__all__ = ["stage"]
