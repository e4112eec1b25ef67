"""Builds the services of conversations from the access to models."""

from collections.abc import Callable
from pathlib import Path

from agent_tui.agent.services import RuntimeServices
from agent_tui.config import PermissionMode
from agent_tui.permissions.trust import FolderTrust
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.access import ModelAccess
from agent_tui.providers.client import ModelClient
from agent_tui.providers.keys import key_values
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter, TokenRatios
from agent_tui.tools.base import Toolbox
from agent_tui.tools.processes.environment import model_environ, person_environ


def conversation_services(
    models: ModelAccess,
    *,
    store: SessionStore,
    toolbox: Toolbox,
    make_permissions: Callable[[Path, PermissionMode], Permissions],
    trust: FolderTrust,
    user_config_dir: Path,
    output_dir: Path,
) -> RuntimeServices:
    """The services of conversations with `models`; those that not every front has are the defaults.

    Commands get the environment of `models` without the providers' keys. The other arguments are as
    for `RuntimeServices`.
    """
    settings, environ = models.settings, models.environ
    catalog = models.catalog
    own_keys = catalog.secret_env_names()
    passed = settings.permissions.pass_environment
    return RuntimeServices(
        provider=models.provider,
        client=ModelClient(models.provider),
        store=store,
        toolbox=toolbox,
        counter=TokenCounter(),
        ratios=TokenRatios(),
        settings=settings,
        make_permissions=make_permissions,
        model_info=catalog.info,
        learn_model=catalog.learn,
        resolve_model=catalog.resolve,
        user_config_dir=user_config_dir,
        trust=trust,
        output_dir=output_dir,
        environ=model_environ(environ, own_keys=own_keys, passed=passed),
        person_environ=person_environ(environ, own_keys=own_keys, passed=passed),
        secrets=key_values(environ, own_keys),
        ways=models.ways,
    )
