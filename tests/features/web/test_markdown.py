from tests.support.rows import each_row

AT = "https://docs.test/guide/page.html"


def page_markdown(content: bytes, charset: str, address: str) -> str:
    from agent_tui.features.web import fetch_process  # with lxml, 7 MB in every worker

    return fetch_process.page_markdown(content, charset, address)


def markdown(body: str) -> str:
    return page_markdown(body.encode(), "utf-8", AT)


def test_what_is_to_be_read_becomes_markdown():
    text = markdown(
        "<title>A\n page</title><h1>Head</h1><p>Some <b>bold</b> and a_b*c.</p>"
        "<ul><li>one<li>two</ul><table><tr><th>k<th>v<tr><td>a<td>1</table>"
        '<pre><code class="language-py">def f():\n    pass</code></pre>'
    )
    assert text == (
        "Title: A page\n\n# Head\n\nSome **bold** and a_b*c.\n\n- one\n- two\n\n"
        "| k | v |\n| --- | --- |\n| a | 1 |\n\n```py\ndef f():\n    pass\n```"
    )


@each_row(
    "left_out",
    [
        "<script>alert('SEEN')</script>",
        "<style>SEEN{}</style>",
        "<nav><a href=/x>SEEN</a></nav>",
        "<template>SEEN</template>",
        "<p hidden>SEEN</p>",
        "<!-- SEEN -->",
        "<button>SEEN</button>",
        "<svg><text>SEEN</text></svg>",
        '<img src="data:image/png;base64,SEEN">',
    ],
)
def test_what_is_not_to_be_read_is_left_out(left_out: str):
    assert markdown(f"<p>before</p>{left_out}<p>after</p>") == "before\n\nafter"


def test_the_one_main_part_stands_for_the_page():
    page = "<header>menu</header><main><p>words</p></main><footer>imprint</footer>"
    assert markdown(page) == "words"
    assert "menu" in markdown(page + "<main>second</main>")


def test_links_are_absolute_and_those_that_lead_nowhere_are_words():
    text = markdown(
        '<a href="../api">api</a> <a href="#top">top</a> <a href="javascript:x()">run</a> '
        '<a href="//cdn.test/x">cdn</a> <a href="http://[bad">bad</a>'
    )
    assert text == "[api](https://docs.test/api) top run [cdn](https://cdn.test/x) bad"
    based = '<head><base href="https://other.test/d/"></head><body><a href="x">x</a>'
    assert markdown(based) == "[x](https://other.test/d/x)"


def test_the_encoding_is_the_servers_else_the_pages_own():
    word = "Straße"
    assert page_markdown(word.encode("latin-1"), "iso-8859-1", AT) == word
    own = f'<meta charset="windows-1252"><p>{word}</p>'.encode("cp1252")
    assert page_markdown(own, "", AT) == word
    assert page_markdown(word.encode(), "no-such-charset", AT) == word


def test_a_page_nested_beyond_all_measure_is_still_read():
    assert "deep" in markdown("<div>" * 5_000 + "deep")
