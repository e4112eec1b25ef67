import base64
import hashlib
import re
import uuid
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui import secret_text
from agent_tui.secret_text import (
    REMOVED,
    has_key,
    has_password_in_address,
    is_secret_name,
    mask_secrets,
    mask_values,
    may_let_in,
)
from tests.support.rows import each_row

BODY = base64.b64encode(hashlib.sha512(b"no real key").digest() * 4).decode()
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(BODY[i : i + 64] for i in range(0, len(BODY), 64))
    + "\n-----END RSA PRIVATE KEY-----"
)
LINES = [BODY[i : i + 64] for i in range(0, len(BODY), 64)]
PGP = "\n".join(
    [
        "-----BEGIN PGP PRIVATE" + " KEY BLOCK-----",
        "Version: GnuPG v2 (test)",
        "Comment: no real key, and no real version.",
        "",
        *LINES,
        "=8xQN",
        "-----END PGP PRIVATE" + " KEY BLOCK-----",
    ]
)
ENCRYPTED = PEM.replace(
    "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n", 1
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


@each_row(
    "secret",
    [
        "sk-proj-abcDEF0123456789abcDEF",
        "sk-ant-api03-abcDEF0123456789-xyz_AA",
        "sk-or-v1-0123456789abcdef0123456789abcdef",
        "xai-0123456789abcdef0123",
        "gsk_0123456789abcdefABCDEF",
        "hf_0123456789abcdefABCDEFxyz",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "ghp_0123456789abcdefABCDEF0123456789abcd",
        "github_pat_11AAAAAAA0123456789_abcdefghij",
        "glpat-0123456789abcdefABCD",
        "xoxb-0123456789-abcdefghij",
        "xoxp-0123456789-abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        JWT,
        PEM,
        PEM.replace("\n", "\\n"),
        PGP,
        ENCRYPTED,
        *(
            "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(key.split("\n"))).strip()
            for key in (PEM, PGP, ENCRYPTED)
        ),
        *(key.replace("\n", "\\n") for key in (PGP, ENCRYPTED)),
        PGP.replace("\n", "\r\n"),
        "\n".join(f"> {line}" for line in PGP.split("\n")),
    ],
)
@each_row("around", ["{}", 'key = "{}"', "(see {}, please)", "a\n{}\nb"])
def test_what_has_the_shape_of_a_secret_is_taken_out(secret: str, around: str):
    masked = mask_secrets(around.format(secret))
    assert secret not in masked
    assert BODY[:64] not in masked
    assert REMOVED in masked
    assert has_key(secret)


@each_row("key", [PEM, PGP, ENCRYPTED])
@each_row("line_end", ["\n", "\r\n", "\\n", "\n> "])
def test_a_private_key_that_is_cut_is_taken_out_to_its_last_character(key: str, line_end: str):
    end = key.index(LINES[4]) + 30
    for left in range(key.index(LINES[0]) + 40, end):
        text = f"see\n{key[:left]}".replace("\n", line_end)
        assert mask_secrets(text) == f"see{line_end}{REMOVED}"
        assert mask_secrets(f'"{text}", and more') == f'"see{line_end}{REMOVED}", and more'


@pytest.mark.parametrize("key", [PEM, PGP, ENCRYPTED])
def test_words_after_a_cut_private_key_stay(key: str):
    cut = key[: key.index(LINES[3])]
    assert mask_secrets(f"{cut}and some words.") == f"{REMOVED}\nand some words."


@each_row(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {REMOVED}"),
        ("authorization: Basic dXNlcjpwYXNzd29yZDE=", f"authorization: Basic {REMOVED}"),
        ("{'x-api-key': '0123456789abcdef'}", f"{{'x-api-key': '{REMOVED}'}}"),
        ("https://ada:sesame@host/x", f"https://ada:{REMOVED}@host/x"),
        ("postgres://:sesame@host", f"postgres://:{REMOVED}@host"),
        ("GET /a?b=c&access_token=abcdef123&d=e", f"GET /a?b=c&access_token={REMOVED}&d=e"),
    ],
)
def test_what_is_announced_as_a_secret_is_taken_out(text: str, masked: str):
    assert mask_secrets(text) == masked


@each_row(
    "text",
    [
        hashlib.sha1(b"a commit").hexdigest(),
        hashlib.sha256(b"a file").hexdigest(),
        f"sha512-{base64.b64encode(hashlib.sha512(b'a package').digest()).decode()}",
        str(uuid.UUID(int=2**100)),
        "sk-learn-contrib-and-friends needs scikit-learn",
        "The Bearer authentication scheme",
        "git@github.com:owner/name.git",
        "https://host:8080/path@version",
        "http://$USER:$PASSWORD@host and http://u:{password}@host",
        "ssh -p 22 user@host:/tmp",
        '"-----BEGIN PRIVATE KEY-----" in text',
        "task-0123456789 risk-assessment-2026-plan",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB0123456789 me@host",
        "OPENAI_API_KEY=$OPENAI_API_KEY",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str):
    assert mask_secrets(text) == text
    assert not has_key(text) or "PRIVATE KEY" in text


@given(st.binary(min_size=300, max_size=3_000))
def test_an_image_in_base64_stays(data: bytes):
    text = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    assert mask_secrets(text) == text


@given(before=st.text(), after=st.text(), values=st.lists(st.text(min_size=6), max_size=3))
def test_a_known_value_is_nowhere_left(before: str, after: str, values: list[str]):
    masked = mask_values(before + after.join(values), values)
    if not any(value in REMOVED or REMOVED in value for value in values):
        assert not any(value in masked.replace(REMOVED, "\0") for value in values)


def test_the_longer_of_two_values_goes_whole():
    assert mask_values("abcdefghij", ("abcdef", "abcdefghij")) == REMOVED


def test_large_texts_of_beginnings_take_no_time_to_speak_of():
    for piece in (
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "eyJ" * 5,
        "://a:",
        "sk-",
        "eyJ-",
        "A",
        "x-api-key",
    ):
        text = piece * (200_000 // len(piece))
        assert len(mask_secrets(text)) <= len(text) + 100


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "MY_API_KEY",
        "PGPASSWORD",
        "AWS_SESSION_TOKEN",
        "client-secret",
        "NPMTOKEN",
        "dbpass",
        "SECRETKEY",
    ],
)
def test_names_of_secrets_are_known(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "AWS_REGION", "KEYBOARD", "TOKENIZERS", "GATE_BYPASS"]
)
def test_other_names_are_no_secrets(name: str):
    assert not is_secret_name(name)


@each_row(
    "address",
    [
        *("https://pypi.fury.io/1a2B3c4D5e6F7g8H9i0J/ada/", "https://tok@pypi.fury.io/ada/"),
        "https://dl.cloudsmith.io/aBcDeF1234567890/org/repo/python/simple/",
        "https://packagecloud.io/priv/0123456789abcdef0123456789abcdef/ada/repo/pypi/simple",
        *("https://conda.anaconda.org/t/secret/org", "https://repo.example/simple?auth=ada"),
        "sparse+https://cargo.example/k3v9q2x7m1z8/index/",
        "direct,HTTPS://go.example/3f2b8c1e-9d4a-4b6f-8e7d-1a2b3c4d5e6f|off",
        "https://npm.example/cmVmdGtuOjAxOjE3%30/",
        "https://pypi.example/aGVsbG8gd29ybGQ/simple",
        "[https://pypi.example/simple, https://pypi.example/QWxhZGRpbjpvcGVu]",
    ],
)
def test_an_address_that_may_hold_a_token_is_found(address: str):
    assert may_let_in(address)


@each_row(
    "address",
    [
        *("https://pypi.org/simple", "https://pypi.tuna.tsinghua.edu.cn/simple/"),
        *("https://registry.npmjs.org/", "https://registry.npmmirror.com", "https://goproxy.cn"),
        "https://nexus.corp.example:8443/repository/pypi-all/simple",
        "https://artifactory.corp.example/artifactory/api/npm/npm-virtual/",
        "https://us-central1-python.pkg.dev/my-project-314159/my_repo/simple/",
        "https://ada-111122223333.d.codeartifact.us-east-1.amazonaws.com/pypi/repo/simple/",
        "https://gitlab.com/api/v4/projects/12345678/packages/pypi/simple",
        "https://pkgs.dev.azure.com/contoso/_packaging/MyFeed/npm/registry/",
        *("https://download.pytorch.org/whl/cu121", "https://conda.anaconda.org/conda-forge"),
        *("sparse+https://rsproxy.cn/index/", "https://mirrors.ustc.edu.cn/crates.io-index"),
        "https://proxy.golang.org,https://goproxy.io,direct",
        *("https://repo.example/neo4j/log4j2/x86_64/el8", "postgres://ada@db/x?sslmode=off"),
        *("no address", "https://", "https://host/${TOKEN}/simple"),
        "http://www.w3.org/2001/XMLSchema-instance",
    ],
)
def test_an_address_of_a_public_index_or_a_mirror_holds_no_token(address: str):
    assert not may_let_in(address)


def test_a_password_in_an_address_is_found():
    assert has_password_in_address("http://me:hunter2@proxy:3128")
    assert not has_password_in_address("http://proxy:3128")


def mask_without_marks(text: str, known_values: tuple[str, ...]) -> str:
    """What `mask_secrets` does, with each rule looked for everywhere."""
    text = mask_values(text, known_values)
    spans = [
        secret_text.secret_span(rule, found)
        for rule in (*secret_text.OWN_RULES, *secret_text.load_rules())
        if not rule.keywords or any(word in text.lower() for word in rule.keywords)
        for found in re.finditer(rule.pattern, text, re.ASCII)
    ]
    masked = [False] * len(text)
    for start, end in filter(None, spans):
        masked[start:end] = [True] * (end - start)
    pieces = [
        REMOVED if is_masked else text[places[0] : places[-1] + 1]
        for is_masked, group in groupby(range(len(text)), key=masked.__getitem__)
        for places in [list(group)]
    ]
    return "".join(pieces)


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("sk-", "pk-", "rk-", "xai-", "nvapi-", "gsk_", "hf_", "AIza", "ghp_", "ghr_"),
                *("github_pat_", "glpat-", "npm_", "dop_v1_", "shpat_", "xox", "xoxb-", "pypi-"),
                *("sk_live_", "rk_live_", "whsec_", "SG.", "AKIA", "ASIA", "eyJ", JWT, PEM),
                *("-----BEGIN ", "PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", BODY[:64]),
                *("Bearer ", "BEARER ", "author", "Authorization: Basic ", "authorızation=Token "),
                *(
                    "x-api-key: ",
                    "API-\u212aEY:",
                    "?password=",
                    "&acce\u017f\u017f_token=",
                    "?apı_key=",
                ),
                *(
                    "&client_secret=",
                    "client_\u017fecret=",
                    "host=db ",
                    ";pa\u017fsword=",
                    "pwd = ",
                ),
                *("PASSWORD=", "postgres://bob:", "@", "https://hooks.slack.com/services/", ";"),
                *(
                    "task-",
                    "a",
                    "0123456789abcdef",
                    "abcDEF0123456789abcDEF",
                    "\n",
                    "\\n",
                    " ",
                    "é",
                ),
            ]
        ),
        st.text(max_size=4),
    ),
    max_size=12,
)


@given(PIECES.map("".join), st.lists(st.sampled_from(["abc", "sk-", "pass", "0"]), max_size=2))
def test_looking_for_marks_first_changes_no_result(text: str, known: list[str]):
    values = tuple(known)
    assert mask_secrets(text, values) == mask_without_marks(text, values)
