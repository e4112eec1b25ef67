"""What the first screen offers."""

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.screen_options import load_options
from agent_tui.providers.catalog import version_of
from agent_tui.providers.table import read_bundled_table


async def test_a_pasted_key_comes_with_the_newest_working_model_of_its_provider() -> None:
    options = load_options(parse_arguments([]))
    assert options.first_run is not None
    models = {choice.env_name: choice.model.name for choice in options.first_run.keys}
    await options.close()
    assert set(models) == {
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
    }
    sonnets = [
        name
        for name in read_bundled_table().of_provider("anthropic")
        if name.startswith("anthropic/claude-sonnet-") and len(name.rsplit("-", 1)[1]) < 3
    ]
    assert models["ANTHROPIC_API_KEY"] == max(sonnets, key=version_of)
