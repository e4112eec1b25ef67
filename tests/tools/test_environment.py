import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.providers.keys import secret_variables
from agent_tui.tools.processes.environment import (
    git_environ,
    model_environ,
    person_environ,
    shell_environ,
)
from tests.support.rows import each_row

CANARY = "canary-value"
SECRET_NAMES = [
    *sorted(secret_variables()),
    *("GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "SLACK_BOT_TOKEN", "TOKEN", "MY_SECRET", "SECRET"),
    *("DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD_PASSWORD", "SMTP_PASS", "GPG_PASSPHRASE"),
    *("STRIPE_API_KEY", "STRIPE_APIKEY", "stripe_api_key", "SIGNING_KEY", "DEPLOY_PRIVATE_KEY"),
    *("DJANGO_SECRET_KEY", "AZURE_CLIENT_SECRET", "AZURE_STORAGE_ACCOUNT_KEY", "SENTRY_DSN"),
    *("AWS_SESSION_TOKEN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "NPM_CONFIG__AUTH"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "SESSION_COOKIE", "GITLAB_PAT", "ENCRYPTION_KEY"),
    *("MYSQL_PWD", "DB_PWD", "SVC_CRED", "DEPLOY_CREDS", "API_BEARER", "LDAP_PASS"),
    *("npm_config_//npm.example/:_authToken", "ORG_GRADLE_PROJECT_mavenToken", "clientSecret"),
    *("OP_SESSION_work", "BW_SESSION", "SSHPASS", "DOCKER_AUTH_CONFIG", "LDAP_BINDPW"),
    *("BUNDLE_GEMS__EXAMPLE__COM", "UV_INDEX_WORK_USERNAME", "POETRY_HTTP_BASIC_WORK_USERNAME"),
]
HARMLESS = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/ada",
    "PWD": "/home/ada/passwords",
    "LANG": "de_DE.UTF-8",
    "SSH_AUTH_SOCK": "/run/user/1000/ssh",
    "TOKENIZERS_PARALLELISM": "false",
    "KEYBOARD": "de",
    "AWS_REGION": "eu-central-1",
    "AWS_PROFILE": "work",
    "VIRTUAL_ENV": "/home/ada/proj/.venv",
    "EDITOR": "vim",
    "COMPASS": "north",
    "OLDPWD": "/home/ada",
    "INIT_CWD": "/home/ada/proj",
    "CREDO_OPTS": "--strict",
    "BEARERS_ROAD": "1",
    "LS_COLORS": "rs=0:di=01;34:*.pwd=00;36:",
    "PS1": "\\u@\\h:\\w pwd=\\w $ ",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "STRIPE_PUBLISHABLE": "pk_live_0123456789abcdefghij",
    "DOCS": "https://api.slack.com/messaging/webhooks",
    "DISCORD_INVITE": "https://discord.com/invite/abcdefgh",
    "ODBC": "Server=db;Database=work;Trusted_Connection=yes;Password=",
    "TEMPLATE": "host=db user=ada password=$PGPASSWORD",
    "JAVA_HOME": "/usr/lib/jvm/java-21",
    "SPRING_APPLICATION_JSON": '{"spring.datasource.password": "${DB}", "server.port": "80"}',
    "no_proxy": "localhost,127.0.0.1",
    "http_proxy": "http://proxy.example:3128",
    "AUTHOR": "Ada",
    "DESKTOP_SESSION": "gnome",
    "XDG_SESSION_TYPE": "tty",
    "BUNDLE_BUILD__NOKOGIRI": "--use-system-libraries",
    "PIP_INDEX_URL": "https://pypi.tuna.tsinghua.edu.cn/simple",
    "GOPROXY": "https://goproxy.cn,direct",
    "DATABASE_URL": "postgres://localhost/test",
    "GIT_AUTHOR_NAME": "Ada",
    "NODE_OPTIONS": "--max-old-space-size=4096",
}


@each_row("name", SECRET_NAMES)
def test_a_variable_named_like_a_secret_is_not_passed_on(name: str):
    assert model_environ({name: CANARY}, own_keys=(), passed=()) == {}


def test_harmless_variables_are_passed_on():
    assert model_environ(HARMLESS, own_keys=(), passed=()) == HARMLESS


@each_row(
    "value",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "ghp_0123456789abcdefghij",
        "github_pat_11ABCDEFG0123456789",
        "glpat-abcdefghij0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "hf_abcdefghijklmnopqrst",
        "xoxb-0123456789-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nMII",
        "postgres://ada:sesame@db.example/work",
        '{"auth": "ghp_0123456789abcdefghij"}',
        "sk_" + "live_0123456789abcdefghij",
        "rk_" + "live_0123456789abcdefghij",
        "whsec_0123456789abcdefghij",
        "https://hooks.slack.com/" + "services/T00000000/B00000000/abcdefghij",
        "https://discord.com/api/" + "webhooks/123456789/abcdefghij",
        "https://work.webhook.office.com/" + "webhookb2/abcdefghij",
        "Server=db;User Id=ada;Password=sesame;",
        "Data Source=db;uid=ada;pwd=sesame",
        "Password=sesame;Server=db",
        "host=db user=ada password=sesame",
        "https://pypi.example/1a2B3c4D5e6F7g8H/simple",
        "https://1a2B3c4D5e6F7g8H@go.example,direct",
        "-Dhttps.proxyHost=proxy -Dhttps.proxyPassword=sesame",
        '{"spring.datasource.password": "sesame"}',
    ],
)
def test_a_value_that_looks_like_a_secret_is_not_passed_on(value: str):
    assert model_environ({"SETTING": value}, own_keys=(), passed=()) == {}


@each_row(
    ("given", "kept"),
    [
        ("http://ada:sesame@proxy.example:3128", "http://proxy.example:3128"),
        ("socks5h://token@proxy.example", "socks5h://proxy.example"),
        ("ada:sesame@proxy.example:3128", "proxy.example:3128"),
        ("http://proxy.example:3128", "http://proxy.example:3128"),
    ],
)
@each_row("name", ["HTTPS_PROXY", "http_proxy", "npm_config_https_proxy"])
def test_a_proxy_stays_without_its_user_and_password(name: str, given: str, kept: str):
    assert model_environ({name: given}, own_keys=(), passed=()) == {name: kept}
    assert model_environ({name: given}, own_keys=(), passed=("*",)) == {name: given}


def test_git_settings_that_are_left_out_leave_no_gap():
    given = {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "url.https://tok@git.example/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example/",
        "GIT_CONFIG_KEY_1": "user.name",
        "GIT_CONFIG_VALUE_1": "Ada",
        "GIT_CONFIG_KEY_2": "http.extraheader",
        "GIT_CONFIG_VALUE_2": "Authorization: Basic YWRhOnNlc2FtZTE=",
    }
    assert model_environ(given, own_keys=(), passed=()) == {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Ada",
    }


def test_what_the_settings_name_is_passed_on_and_nothing_like_it():
    names = ("GITHUB_TOKEN", "GITHUB_TOKEN_2", "AWS_A_TOKEN", "OWN")
    environ = {name: CANARY for name in names}
    kept = model_environ(environ, own_keys={"OWN"}, passed=("GITHUB_TOKEN", "AWS_*"))
    assert set(kept) == {"GITHUB_TOKEN", "AWS_A_TOKEN"}
    assert model_environ(environ, own_keys={"OWN"}, passed=("OWN",)) == {"OWN": CANARY}


def test_the_persons_own_commands_miss_only_the_keys_of_providers():
    environ = {"GITHUB_TOKEN": CANARY, "OPENAI_API_KEY": CANARY, "MISTRAL_API_KEY": CANARY}
    keys = {"OPENAI_API_KEY", "MISTRAL_API_KEY"}
    kept = person_environ(environ, own_keys=keys, passed=("MISTRAL_*",))
    assert set(kept) == {"GITHUB_TOKEN", "MISTRAL_API_KEY"}


@given(st.dictionaries(st.text(), st.text()), st.sets(st.text()))
def test_filters_only_ever_leave_out(environ: dict[str, str], own: set[str]):
    for kept in (
        model_environ(environ, own_keys=own, passed=()),
        person_environ(environ, own_keys=own, passed=()),
    ):
        assert kept.items() <= environ.items()
        assert not own & kept.keys()
    assert model_environ(environ, own_keys=own, passed=("*",)) == environ


@each_row(
    "name",
    [
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASH_FUNC_ls%%", "LESSOPEN"),
        *("GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_PARAMETERS"),
    ],
)
def test_variables_that_make_tools_run_something_are_dropped(name: str):
    assert name not in shell_environ({name: "evil"})


def test_nothing_pages_or_asks():
    environ = shell_environ({"PAGER": "less", "GIT_PAGER": "less", "TERM": "xterm"})
    assert (environ["PAGER"], environ["GIT_PAGER"], environ["TERM"]) == ("cat", "cat", "dumb")
    assert environ["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.parametrize("count", ["1", "", "nonsense", None])
def test_git_settings_of_the_person_stay_beside_ours(count: str | None):
    mine = {"GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada", "PATH": "/usr/bin:/bin"}
    environ = shell_environ(mine if count is None else {**mine, "GIT_CONFIG_COUNT": count})
    said = subprocess.run(
        ["git", "config", "core.fsmonitor"], env=environ, capture_output=True, text=True, cwd="/"
    )
    assert said.stdout == "false\n"
    if count == "1":
        asked = ["git", "config", "user.name"]
        said = subprocess.run(asked, env=environ, capture_output=True, text=True, cwd="/")
        assert said.stdout == "Ada\n"


def test_our_git_calls_take_only_places_from_the_environment():
    environ = {
        "GIT_DIR": "/r/.git",
        "GIT_SSH_COMMAND": "evil",
        "GIT_CONFIG_COUNT": "1",
        "HOME": "/h",
    }
    kept = git_environ(environ)
    assert (kept["GIT_DIR"], kept["HOME"], kept["GIT_ALLOW_PROTOCOL"]) == ("/r/.git", "/h", "none")
    assert not {"GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"} & kept.keys()
