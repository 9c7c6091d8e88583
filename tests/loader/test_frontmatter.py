"""SKILL.md parsing (S3.4): what is accepted, what is repaired, what is refused."""

import contextlib
import subprocess
import sys

import frontmatter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpack.exceptions import SkillFileError
from skillpack.untrusted.strict_yaml import (
    MAX_FRONTMATTER_CHARACTERS,
    StrictHandler,
    parse,
    write,
)
from thorough import examples

FIELDS = {"name": "a", "description": "b"}
HEAD = "---\nname: a\ndescription: b\n---\n"


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        pytest.param(HEAD + "\nbody\n", FIELDS, "body", id="plain"),
        pytest.param("\ufeff" + HEAD + "body", FIELDS, "body", id="byte order mark"),
        pytest.param(HEAD.replace("\n", "\r\n") + "one\r\ntwo\r\n", FIELDS, "one\ntwo", id="CRLF"),
        pytest.param(HEAD.replace("\n", "\r") + "one\rtwo", FIELDS, "one\ntwo", id="CR"),
        pytest.param("--- \nname: a\ndescription: b\n---\t\nbody", FIELDS, "body", id="blanks after the fences"),
        pytest.param("---\nname: a\ndescription: b\n---", FIELDS, "", id="no body and no newline"),
        pytest.param(HEAD + "one\n\n---\n\ntwo\n---\n", FIELDS, "one\n\n---\n\ntwo\n---", id="rules in the body"),
        pytest.param(HEAD + "\n\n    code\n", FIELDS, "    code", id="body opens with indented code"),
        pytest.param(
            "---\nname: a\ndescription: x --- y\n---\n", FIELDS | {"description": "x --- y"}, "", id="dashes in a value"
        ),
        pytest.param(
            "---\nname: a\ndescription: |\n  one\n  ---\n  two\n---\nbody",
            FIELDS | {"description": "one\n---\ntwo\n"},
            "body",
            id="a fence inside a block scalar",
        ),
        pytest.param(
            "---\nname: a\ndescription: >-\n  one\n  two\n---\n", FIELDS | {"description": "one two"}, "", id="folded"
        ),
        pytest.param(
            "---\nname: a\ndescription: 'it''s: so'\n---\n", FIELDS | {"description": "it's: so"}, "", id="quoted"
        ),
        pytest.param(
            "---\nname: a\ndescription: b\nmetadata:\n  version: 1.10\n  on: yes\n---\n",
            FIELDS | {"metadata": {"version": "1.10", "on": "yes"}},
            "",
            id="scalars stay strings",
        ),
        pytest.param("---\nname: a\ndescription: ~\n---\n", FIELDS | {"description": ""}, "", id="null is empty"),
        pytest.param(
            "---\nname: a\ndescription: 画一个晶体管\n---\n正文",
            FIELDS | {"description": "画一个晶体管"},
            "正文",
            id="Chinese",
        ),
    ],
)
def test_a_valid_file_is_read_as_it_is_meant(text, fields, body):
    document = parse(text.encode())
    assert (document.fields, document.body, document.repairs) == (fields, body, ())


@pytest.mark.parametrize(
    ("header", "description"),
    [
        ("description: Use when: asked", "Use when: asked"),
        ("description: Use when: it's asked", "Use when: it's asked"),
        ("description: ends with a colon:", "ends with a colon:"),
        ("description: one: two\n  goes on: here", "one: two goes on: here"),
    ],
)
def test_an_unquoted_colon_is_recovered_with_a_warning(header, description):
    document = parse(f"---\nname: a\n{header}\n---\nbody".encode())
    assert document.fields == {"name": "a", "description": description}
    assert document.repairs == ("the value of 'description' contains ': ' and should be quoted",)


def test_an_unquoted_colon_below_metadata_is_recovered_with_a_warning():
    header = "description: Use when: asked\nmetadata:\n  note: see: here\n    and: there\n  version: 1.10\n  b: c:"
    document = parse(f"---\n{header}\nlicense: a: b\n---\nbody".encode())
    assert document.fields == {
        "description": "Use when: asked",
        "metadata": {"note": "see: here and: there", "version": "1.10", "b": "c:"},
        "license": "a: b",
    }
    keys = [repair.split("'")[1] for repair in document.repairs]
    assert keys == ["description", "metadata.note", "metadata.b", "license"]


def test_a_block_scalar_beside_an_unquoted_colon_stays_as_it_is():
    header = "license: a: b\ndescription: |\n  Use: when: asked\n  - x: y: z\nmetadata:\n  note: |\n    c: d: e"
    document = parse(f"---\n{header}\n---\nbody".encode())
    assert document.fields["description"] == "Use: when: asked\n- x: y: z\n"
    assert document.fields["metadata"] == {"note": "c: d: e\n"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not start with a line '---'"),
        ("# Title\n", "does not start with a line '---'"),
        ("----\nname: a\n----\n", "does not start with a line '---'"),
        ("--- name\n---\n", "does not start with a line '---'"),
        (" ---\nname: a\n---\n", "does not start with a line '---'"),
        ("\n---\nname: a\n---\n", "does not start with a line '---'"),
        ("---\nname: a\nbody", "not closed"),
        ("---\nname: a\n---\u3000", "not closed"),
        ("---\nname: a\n----\nbody", "not closed"),
        ("---\nname: a\n--- x\nbody", "not closed"),
        ("---\nname: a\n--- x\n---\n", "expected a single document"),
        ("---\nname: a\nname: b\n---\n", r"the key 'name' twice \(line 3\)"),
        ("---\nname: a\nm:\n  k: 1\n  k: 2\n---\n", r"the key 'k' twice \(line 5\)"),
        ("---\nname: &n a\ndescription: *n\n---\n", r"YAML alias .*\(line 3\)"),
        ("---\nname: a\nm: &m [*m]\n---\n", "YAML alias"),
        ("---\nbase: &b {x: 1}\nm:\n  <<: *b\n---\n", "YAML alias"),
        ("---\n- name\n---\n", "not a mapping"),
        ("---\njust text\n---\n", "not a mapping"),
        ("---\n? [a]\n: b\n---\n", "a key that is not text"),
        ("---\nname: a\n\tdescription: b\n---\n", "not valid YAML"),
        ("---\nname: 'a\n---\n", "not valid YAML"),
        ("---\nname: a\n" + "x: " + "[" * 100 + "]" * 100 + "\n---\n", "nested more than 32"),
        ("---\nx:\n" + "".join(f"{' ' * level}a:\n" for level in range(1, 300)) + "---\n", "nested more than 32"),
        ("---\nname: a\ndescription: !important b\n---\n", r"the tag '!important' .*\(line 3\)"),
        ("---\nname: a\ndescription: !!python/name:os.system b\n---\n", "the tag 'tag:yaml.org,2002:python/"),
        ("---\nname: " + "a" * MAX_FRONTMATTER_CHARACTERS + "\n---\n", "more than the 65536 allowed"),
    ],
)
def test_a_faulty_file_is_refused_with_the_reason(text, reason):
    with pytest.raises(SkillFileError, match=reason):
        parse(text.encode())


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"---\nname: \xff\n---\n", "0xff at offset 10"),
        (HEAD.encode() + b"\xc3(", "0xc3 at offset 31"),
        ("---\n".encode("utf-16-le") + b"\xff", "0xff at offset 8"),
        (b"\xef\xbb\xbf---\nname: \xff\n---\n", "0xff at offset 13"),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_with_their_place(data, place):
    with pytest.raises(SkillFileError, match=f"not UTF-8: byte {place}$"):
        parse(data)


@pytest.mark.parametrize("opener", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused_before_it_overflows_the_c_stack(opener):
    # 20,000 levels end the process inside PyYAML's C composer; a child process shows that ours survives. libyaml from
    # 0.2.6 on refuses 1,000 levels of a flow sequence itself.
    code = (
        "import re, sys; from skillpack.untrusted.strict_yaml import SkillFileError, parse\n"
        f"try: parse(('---\\nx:\\n  ' + {opener!r} * (60000 // len({opener!r})) + '\\n---\\n').encode())\n"
        "except SkillFileError as error: sys.exit(0 if re.search('nest(ed|ing)|not text', str(error)) else 3)\n"
        "sys.exit(4)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.text())
def test_any_text_is_parsed_or_refused_and_never_anything_else(text):
    data = ("---\n" + text + "\n---\nbody").encode("utf-8", "surrogatepass")
    with contextlib.suppress(SkillFileError):
        assert isinstance(parse(data).fields, dict)


TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\ufffe\uffff"))


@settings(max_examples=examples(300))
@given(st.fixed_dictionaries({"name": TEXTS, "description": TEXTS}, optional={"license": TEXTS}), TEXTS)
def test_what_is_written_is_read_back_by_this_package_and_by_the_plain_library(fields, body):
    text = write(fields, body)
    document = parse(text.encode())
    assert (document.fields, document.repairs) == (fields, ())
    assert document.body == body.rstrip()
    assert frontmatter.parse(text) == (fields, body.strip())


@pytest.mark.parametrize("value", [1.10, True, None, "~"])
def test_a_value_that_would_be_read_as_another_is_not_written(value):
    """PyYAML writes the text "~" in quotes, so it is read back; what is no text is refused."""
    if isinstance(value, str):
        assert parse(write({"name": value}, "").encode()).fields == {"name": value}
    else:
        with pytest.raises(SkillFileError, match="not text"):
            write({"name": value}, "")


def test_the_library_reads_through_the_strict_handler(monkeypatch):
    """Taken out, a byte order mark, duplicate keys and four dashes are read as the library reads them."""
    handlers = []
    plain = frontmatter.parse
    monkeypatch.setattr(
        frontmatter, "parse", lambda text, handler: handlers.append(handler) or plain(text, handler=handler)
    )
    document = parse(b"---\ncontent: a\nhandler: b: c\n---\n\n    code\n----\n")
    assert document.fields == {"content": "a", "handler": "b: c"}
    assert (document.body, len(document.repairs)) == ("    code\n----", 1)
    assert [type(handler) for handler in handlers] == [StrictHandler]
