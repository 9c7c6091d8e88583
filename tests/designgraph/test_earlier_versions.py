"""Graphs of earlier versions, which kept changes in a journal beside the file, are refused in words."""

import pytest

from designgraph.graph import GraphFileError


@pytest.fixture
def journal(path, open_store):
    """Return the path of a journal beside a graph."""
    open_store().create_node("g", "old", "Signal")
    return path.with_name("graph.json.journal")


def test_a_journal_with_changes_is_refused_with_what_to_do_and_nothing_changes(journal, path, open_store):
    journal.write_bytes(b'9b1d {"sequence": 2, "after": "c0ffee", "graph": "g", "changes": []}\n')
    before = [journal.read_bytes(), path.read_bytes()]
    graph = open_store()
    for call in (lambda: graph.list_nodes("g"), lambda: graph.create_node("g", "z", "Signal"), graph.store.fold):
        with pytest.raises(GraphFileError, match="of the version that wrote it, or move it away") as caught:
            call()
        assert caught.value.details["path"] == str(journal)
    assert [journal.read_bytes(), path.read_bytes()] == before
    journal.unlink()
    assert [node["id"] for node in graph.list_nodes("g")["nodes"]] == ["old"]


def test_a_journal_without_a_graph_beside_it_is_refused(path, open_store):
    path.parent.mkdir()
    path.with_name("graph.json.journal").write_bytes(b"9b1d {}\n")
    with pytest.raises(GraphFileError, match="changes of an earlier version"):
        open_store().create_node("g", "b", "Signal")


def test_an_empty_journal_as_a_small_graph_had_it_is_passed_over(journal, open_store):
    journal.write_bytes(b"")
    assert "warnings" not in open_store().create_node("g", "c", "Signal")
    assert [node["id"] for node in open_store().list_nodes("g")["nodes"]] == ["c", "old"]
