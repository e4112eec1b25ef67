"""agent-tui as an agent of Harbor: ``harbor run --agent agent_tui.harbor.agent:AgentTui``."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.options import Cli, InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Trajectory
from pydantic import Field

from agent_tui.harbor.measured import Measured, Wheel, measure_newest, source_of
from agent_tui.installation import COMMAND
from agent_tui.messages import ThinkingLevel
from agent_tui.providers.keys import KEY_VARIABLES, secret_values

_UV = "https://astral.sh/uv/install.sh"
_PYTHON = ">=3.11,<3.14"
_PATH = 'export PATH="$HOME/.local/bin:$PATH"'
_SESSIONS = "sessions"
_LIMIT = 3
"""The exit code of ``agent-tui -p`` for a run that reached one of its limits."""


class AgentTuiOptions(InstalledAgentOptions):
    """What ``--ak NAME=VALUE`` sets; any setting is ``--ae AGENT_TUI_NAME=VALUE``."""

    wheel: str | None = Field(
        default=None, description="Local wheel to install instead of a release."
    )
    max_turns: Annotated[int | None, Cli("--max-turns")] = Field(
        default=None, ge=1, description="Stop after this many model replies."
    )
    max_cost: Annotated[float | None, Cli("--max-cost")] = Field(
        default=None, gt=0, description="Stop calling models once this many dollars are spent."
    )
    reasoning_effort: Annotated[ThinkingLevel | None, Cli("--thinking")] = Field(
        default=None, description="How much the model thinks; harbor's --effort sets it too."
    )
    fallback_model: Annotated[str | None, Cli("--fallback-model")] = Field(
        default=None, description="Model to switch to if the first one does not answer."
    )


class AgentTui(BaseInstalledAgent):
    """Installs agent-tui in a task's environment, runs one prompt, and reports its cost.

    The session file is in the agent's logs and grows during the run, so a trial that ran out of
    time also has a trajectory and counts.
    """

    capabilities = AgentCapabilities(atif=True)
    options_model = AgentTuiOptions

    @staticmethod
    def name() -> str:
        """The name that Harbor lists."""
        return COMMAND

    @classmethod
    def preflight(
        cls, kwargs: dict[str, Any] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Check the options before any trial begins.

        Raises:
            ValueError: An option is invalid, or there is nothing to install.
        """
        options = cast("AgentTuiOptions", cls.parse_options(kwargs, env))
        source_of(options.wheel, options.version)

    @property
    def remote_session_logs_dir(self) -> PurePosixPath:
        """Where the session files are, in the environment."""
        return self.environment_logs_dir / _SESSIONS

    def get_version_command(self) -> str:
        """The shell command that prints the version."""
        return f"{_PATH}; {COMMAND} --version"

    def parse_version(self, stdout: str) -> str:
        """The number in what `get_version_command` prints."""
        return stdout.split()[-1]

    async def install(self, environment: BaseEnvironment) -> None:
        """Install uv if it is missing, then agent-tui with it in a separate environment."""
        options = self._given
        source = source_of(options.wheel, options.version)
        if isinstance(source, Wheel):
            requirement = f"/tmp/{source.path.name}"
            await environment.upload_file(source.path, requirement)
        else:
            requirement = source
        found = await environment.exec(f"{_PATH}; command -v uv")
        if found.return_code:
            await self.ensure_system_dependencies(environment, ("curl", "ca_certificates"))
            await self.exec_as_agent(environment, f"curl -LsSf {_UV} | sh")
        wanted = f"--python '{_PYTHON}' {shlex.quote(requirement)}"
        await self.exec_as_agent(environment, f"{_PATH}; uv tool install --force {wanted}")

    @with_prompt_template
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Work on `instruction`. Reaching ``max_turns`` or ``max_cost`` is not a failure."""
        logs = self.environment_logs_dir
        log = shlex.quote(str(logs / "agent-tui.log"))
        options = [
            *("--permission-mode", "full", "--trust"),
            *("--sandbox", "off"),  # the container is the sandbox
            *("--session-dir", str(self.remote_session_logs_dir)),
            *(("-m", self.model_name) if self.model_name else ()),
        ]
        # Piped text is never a command, whatever it begins with.
        command = (
            f"{_PATH}; printf %s {shlex.quote(instruction)} | "
            f"{COMMAND} -p - {shlex.join(options)} {self.build_cli_flags()} "
            f">{shlex.quote(str(logs / 'answer.txt'))} 2>{log} "
            f"|| {{ code=$?; tail -c 4000 {log} >&2; [ $code -eq {_LIMIT} ]; }}"
        )
        await self.exec_as_agent(environment, command, env=self._keys())

    def convert_trajectory(self, logs_dir: Path) -> Trajectory | None:
        """The session below `logs_dir` as a trajectory; None if there is none yet."""
        measured = self._measure(logs_dir)
        return Trajectory.model_validate(measured.trajectory) if measured else None

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Add the run's tokens and cost to `context`, and write ``trajectory.json`` to the logs."""
        measured = self._measure(self.logs_dir)
        if measured is None:
            return
        written = json.dumps(measured.trajectory, ensure_ascii=False, indent=2)
        (self.logs_dir / "trajectory.json").write_text(written, encoding="utf-8")
        context.n_input_tokens = measured.input_tokens
        context.n_cache_tokens = measured.cached_tokens
        context.n_output_tokens = measured.output_tokens
        context.cost_usd = measured.cost_usd
        context.metadata = {
            "session_id": measured.session_id,
            "replies": measured.replies,
            "compactions": measured.compactions,
        }

    @property
    def _given(self) -> AgentTuiOptions:
        return cast("AgentTuiOptions", self.options)

    def _measure(self, logs_dir: Path) -> Measured | None:
        known = secret_values({**self._keys(), **self.extra_env})
        return measure_newest(logs_dir / _SESSIONS, known)

    def _keys(self) -> dict[str, str]:
        """The available keys of the providers whose models are used."""
        models = (self.model_name, self._given.fallback_model)
        providers = {model.partition("/")[0] for model in models if model}
        names = (name for provider in providers for name in KEY_VARIABLES.get(provider, ()))
        values = {name: self._get_env(name) for name in names}
        return {name: value for name, value in values.items() if value}
