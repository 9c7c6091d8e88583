"""Graphs of earlier versions, which kept changes in a journal: they are read, or refused in words, and nothing is lost.

The files are made here as those versions made them, without the code that reads them.
"""

import json
from hashlib import blake2b

import pytest

from designgraph.graph_errors import GraphError, GraphFileError

HEAD = '{\n  "format": "design-knowledge-graph",\n  "version": 1,\n  "graphs": {'
NODE = '        {"id": "old", "type": "Signal", "properties": {"width": "1"}}'
GRAPH = f'\n    "g": {{\n      "nodes": [\n{NODE}\n      ],\n      "relations": [\n      ]\n    }}\n  }},'
CHANGES = [
    [["node", "a", "Signal", {"n": 1.5}], ["node", "b", "Plan", {}]],
    [["relation", "a", "b", "DRIVES"]],
    [["properties", "old", {"width": "2"}]],
    [["no_relation", "a", "b", "DRIVES"], ["relation", "a", "old", "CONNECTS"]],
    [["no_node", "b"]],
]
IDS = [["old"], ["a", "b", "old"], ["a", "b", "old"], ["a", "b", "old"], ["a", "b", "old"], ["a", "old"]]


def digest(content):
    return blake2b(content, digest_size=8).hexdigest()


def records(changes, sequence=1, after="c0ffee"):
    lines = []
    for number, change in enumerate(changes, sequence + 1):
        body = json.dumps({"sequence": number, "after": after, "graph": "g", "changes": change}).encode()
        after = digest(body)
        lines.append(after.encode() + b" " + body + b"\n")
    return lines


def snapshot(sequence=1, last="c0ffee"):
    body = (HEAD + GRAPH).encode()
    state = f'\n  "state": {{"sequence": {sequence}, "last": "{last}", "digest": "{digest(body)}"}}\n}}\n'
    return body + state.encode()


@pytest.fixture
def earlier(path):
    """Return a function that writes the files of an earlier version, and returns the journal's path."""

    def write(journal, content=None):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(snapshot() if content is None else content)
        path.with_name("graph.json.journal").write_bytes(journal)
        return path.with_name("graph.json.journal")

    return write


def ids(graph):
    return [node["id"] for node in graph.list_nodes("g")["nodes"]]


def test_the_changes_of_a_journal_are_read_and_the_next_change_brings_them_into_the_file(earlier, path, open_store):
    content = b"".join(records(CHANGES))
    journal = earlier(content)
    graph = open_store()
    assert ids(graph) == ids(open_store()) == ["a", "old"]
    assert graph.list_nodes("g")["nodes"][1]["properties"] == {"width": "2"}
    assert graph.query("g", "a")["relations"] == [{"from": "a", "to": "old", "type": "CONNECTS"}]
    assert journal.read_bytes() == content
    answered = graph.create_node("g", "c", "Signal")
    assert "which was renamed" in answered["warnings"][0]
    assert not journal.exists()
    assert path.with_name("graph.json.journal.old").read_bytes() == content
    assert ids(open_store()) == ids(graph) == ["a", "c", "old"]
    assert "warnings" not in open_store().list_nodes("g")


def test_the_journal_of_a_small_graph_is_empty_and_goes(earlier, open_store):
    journal = earlier(b"")
    assert ids(open_store()) == ["old"]
    assert "warnings" not in open_store().create_node("g", "c", "Signal")
    assert not journal.exists()
    assert ids(open_store()) == ["c", "old"]


def test_a_journal_alone_is_read(path, open_store):
    path.parent.mkdir()
    path.with_name("graph.json.journal").write_bytes(b"".join(records([[["node", "a", "Signal", {}]]], 0, "")))
    assert ids(open_store()) == ["a"]
    open_store().create_node("g", "b", "Signal")
    assert ids(open_store()) == ["a", "b"]


def test_folding_brings_a_journal_into_the_file(earlier, path, open_store):
    journal = earlier(b"".join(records(CHANGES)))
    assert open_store().store.fold() is True
    assert not journal.exists()
    assert [node["id"] for node in json.loads(path.read_bytes())["graphs"]["g"]["nodes"]] == ["a", "old"]


def test_a_journal_cut_at_any_byte_keeps_every_whole_record(earlier, open_store):
    lines = records(CHANGES)
    whole = b"".join(lines)
    ends = [len(b"".join(lines[:count])) for count in range(len(lines) + 1)]
    for cut in range(len(whole) + 1):
        earlier(whole[:cut])
        listed = open_store().list_nodes("g")
        assert [node["id"] for node in listed["nodes"]] == IDS[sum(end <= cut for end in ends) - 1]
        assert any("interrupted" in text for text in listed.get("warnings", ())) is (cut not in ends)


def test_a_journal_with_any_byte_changed_is_never_taken_silently(earlier, open_store):
    whole = b"".join(records(CHANGES[:3]))
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        journal = earlier(bytes(changed))
        if place == len(whole) - 1:  # without its line end the last record is the rest of an unfinished write
            assert open_store().list_nodes("g")["warnings"]
            continue
        for call in (lambda: open_store().list_nodes("g"), lambda: open_store().create_node("g", "z", "Signal")):
            with pytest.raises(GraphFileError, match="is damaged"):
                call()
        assert journal.read_bytes() == changed


def test_pages_that_a_loss_of_power_left_empty_are_a_torn_tail(earlier, open_store):
    a, b = records(CHANGES[:2])
    for tail in (b"\0" * 500, b[:60] + b"\0" * 50 + b[110:], b[:100] + b"\0" * 9000):
        earlier(a + tail)
        assert ids(open_store()) == ["a", "b", "old"]


def test_a_record_that_is_missing_doubled_or_out_of_order_is_refused(earlier, open_store):
    a, b, c, d = records([[["node", name, "Signal", {}]] for name in "abcd"])
    for lines in ([b, c, d], [a, c, d], [a, b, d], [a, b, b, c, d], [a, c, b, d], [a, b, c, d, a], [d]):
        earlier(b"".join(lines))
        with pytest.raises(GraphFileError, match="of another version"):
            open_store().list_nodes("g")
    earlier(a + b + c + d)
    assert ids(open_store()) == ["a", "b", "c", "d", "old"]


def test_a_journal_of_another_version_is_refused_with_what_to_do(earlier, path, open_store):
    content = b"".join(records(CHANGES, 1, "another"))
    journal = earlier(content)
    for call in (lambda: open_store().list_nodes("g"), lambda: open_store().create_node("g", "z", "Signal")):
        with pytest.raises(GraphFileError, match="Restore the version that belongs to the journal"):
            call()
    assert (journal.read_bytes(), path.read_bytes()) == (content, snapshot())
    journal.unlink()
    assert ids(open_store()) == ["old"]


def test_records_that_the_file_holds_already_are_passed_over(earlier, open_store):
    lines = records(CHANGES[:1], 0)
    earlier(lines[0], snapshot(1, lines[0][:16].decode()))
    assert ids(open_store()) == ["old"]
    open_store().create_node("g", "c", "Signal")
    assert ids(open_store()) == ["c", "old"]


def test_a_crash_before_the_journal_was_renamed_loses_and_repeats_nothing(earlier, open_store):
    content = b"".join(records(CHANGES))
    journal = earlier(content)
    open_store().create_node("g", "c", "Signal")
    journal.write_bytes(content)
    assert ids(open_store()) == ["a", "c", "old"]
    open_store().create_node("g", "d", "Signal")
    assert ids(open_store()) == ["a", "c", "d", "old"]


def test_an_edit_keeps_the_changes_of_the_journal_or_is_refused(earlier, path, open_store):
    edited = snapshot().replace(NODE.encode(), NODE.encode() + b',\n        {"id": "mine", "type": "Plan"}')
    earlier(b"".join(records(CHANGES)), edited)
    listed = open_store().list_nodes("g")
    assert [node["id"] for node in listed["nodes"]] == ["a", "mine", "old"]
    assert "edited outside" in listed["warnings"][0]
    earlier(b"".join(records(CHANGES)), edited.replace(b'"old"', b'"new"'))
    files = {file: file.read_bytes() for file in path.parent.iterdir()}
    for call in (lambda: open_store().list_nodes("g"), lambda: open_store().create_node("g", "z", "Signal")):
        with pytest.raises(GraphFileError, match="Undo the edit, or move the journal away"):
            call()
    assert {file: file.read_bytes() for file in path.parent.iterdir() if file in files} == files


@pytest.mark.parametrize(
    "changed",
    [
        *({"sequence": value} for value in ("2", None, 1e400, [], True)),
        *({"graph": value} for value in (5, None, ["main"], {})),
        *({"changes": value} for value in ("node", 5, {"node": 1}, [[]], [5], [["node", {}, [], 3]], [["node", "n"]])),
        *({"changes": [["properties", value, value]]} for value in (5, [], {}, "n1")),
        *({"changes": [["relation", value, "n1", value]]} for value in (5, [], {}, None)),
    ],
    ids=str,
)
def test_a_signed_record_that_is_none_is_one_clear_error(earlier, open_store, changed):
    body = json.dumps({"sequence": 2, "after": "c0ffee", "graph": "g", "changes": [], **changed}).encode()
    earlier(digest(body).encode() + b" " + body + b"\n")
    with pytest.raises(GraphError, match=r"is damaged|no longer applies|another version"):
        open_store().list_nodes("g")
