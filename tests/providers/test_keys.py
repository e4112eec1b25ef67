"""Keys stay out of texts."""

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.providers.keys import key_variable, secret_values
from agent_tui.secret_text import REMOVED, mask_secrets

SECRET = "sk-test-0123456789abcdef"


@given(before=st.text(), after=st.text(), secret=st.text(min_size=6))
def test_a_secret_of_the_environment_is_in_no_text(before: str, after: str, secret: str) -> None:
    values = secret_values({"SOME_API_KEY": secret})
    cleaned = mask_secrets(f"{before}{secret}{after}", values)
    assert secret not in cleaned.replace(REMOVED, "\0")


def test_known_variables_named_ones_and_secret_looking_ones_are_secrets() -> None:
    environ = {
        "ANTHROPIC_API_KEY": "anthropic-secret",
        "MINE": "named-secret",
        "GITHUB_TOKEN": "looks-secret",
        "HOME": "/home/someone",
        "OPENAI_API_KEY": "tiny",
    }
    assert set(secret_values(environ, ("MINE",))) == {
        "anthropic-secret",
        "named-secret",
        "looks-secret",
    }


def test_a_secret_inside_another_does_not_save_the_rest() -> None:
    secrets = secret_values({"A_API_KEY": "abcdef", "B_API_KEY": "abcdefghij"})
    assert mask_secrets("abcdefghij", secrets) == REMOVED


def test_what_looks_like_a_key_goes_too_and_ordinary_words_stay() -> None:
    assert SECRET not in mask_secrets(f"key {SECRET} refused", ())
    assert "token123456" not in mask_secrets("Authorization: Bearer token123456", ())
    assert (
        mask_secrets("sk-learn needs scikit-learn-contrib", ())
        == "sk-learn needs scikit-learn-contrib"
    )


def test_the_usual_variable_of_a_provider_is_known() -> None:
    assert key_variable("gemini") == "GEMINI_API_KEY"
    assert key_variable("nobody") == ""
