"""What is found on disk after anything: torn, cut, damaged, edited and exchanged files (S2.2)."""

import json
import os

import pytest

from designgraph import GraphError
from designgraph.graph import GraphFileError


def ids(graph, graph_id="g"):
    return [node["id"] for node in graph.list_nodes(graph_id)["nodes"]]


def add(graph, *names):
    for name in names:
        graph.create_node("g", name, "Signal", {"of": name})


def test_a_snapshot_cut_anywhere_is_refused_and_left_alone(path, open_store):
    writer = open_store()
    add(writer, "a", "b")
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        graph = open_store()
        with pytest.raises(GraphFileError, match="cannot be used"):
            graph.list_nodes("g")
        with pytest.raises(GraphFileError, match="cannot be used"):
            graph.create_node("g", "z", "Signal")
        assert path.read_bytes() == whole[:cut]


def test_a_snapshot_with_any_byte_changed_is_refused_or_reported_as_edited(path, open_store):
    writer = open_store()
    add(writer, "a", "b")
    whole = path.read_bytes()
    before = json.loads(whole)["graphs"]
    reported = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        graph = open_store()
        try:
            warnings = graph.list_nodes("g").get("warnings", [])
            content = json.loads(bytes(changed).decode("utf-8-sig"))["graphs"]
            reported += bool(warnings)
            assert warnings or content == before
        except GraphFileError:
            continue
    assert reported > 0


def edited(path, change):
    """Edit the snapshot as a person would, with an editor that writes it in place."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document["graphs"]["g"])
    path.write_text(json.dumps(document, indent=4), encoding="utf-8")


def test_an_edit_by_hand_is_taken_reported_and_signed_by_the_next_change(path, open_store):
    warm, other = open_store(), open_store()
    add(warm, "a", "b")
    assert ids(other) == ["a", "b"]
    edited(path, lambda graph: graph["nodes"].append({"id": "mine", "type": "Plan"}))
    listed = warm.list_nodes("g")
    assert [node["id"] for node in listed["nodes"]] == ["a", "b", "mine"]
    assert "edited outside" in listed["warnings"][0]
    assert "edited outside" in open_store().list_nodes("g")["warnings"][0]
    add(warm, "c")
    assert "warnings" not in open_store().list_nodes("g")
    assert ids(other) == ids(open_store()) == ["a", "b", "c", "mine"]


def test_a_file_that_is_only_formatted_otherwise_is_no_edit(path, open_store):
    add(open_store(), "a")
    for text in (
        path.read_text(encoding="utf-8").replace("\n", "\r\n"),
        json.dumps(json.loads(path.read_text(encoding="utf-8"))),
        "\ufeff" + path.read_text(encoding="utf-8"),
    ):
        path.write_bytes(text.encode())
        assert "warnings" not in open_store().list_nodes("g")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g["nodes"].append({"id": "a", "type": "Signal"}), "nodes[2]: node 'a' exists already"),
        (lambda g: g["nodes"].append({"id": "9", "type": "Signal"}), "nodes[2]: id '9' is not a valid id"),
        (lambda g: g["nodes"].append({"id": "c", "kind": "Signal"}), "nodes[2]: has unknown fields kind"),
        (lambda g: g["nodes"].append("c"), "nodes[2]: must be an object"),
        (lambda g: g.update(nodes={}), "graphs.g.nodes: must be an array"),
        (lambda g: g.update(notes=[]), "graphs.g: has unknown fields notes"),
        (lambda g: g["relations"].append({"from": "a", "to": "x", "type": "DRIVES"}), "node 'x' does not exist"),
        (lambda g: g["relations"].append({"from": "a", "to": "b", "type": "A B"}), "type 'A B' is not a valid id"),
    ],
)
def test_a_wrong_edit_is_refused_with_its_place(path, open_store, change, message):
    graph = open_store()
    add(graph, "a", "b")
    edited(path, change)
    before = path.read_bytes()
    with pytest.raises(GraphFileError) as caught:
        graph.create_node("g", "c", "Signal")
    assert message in str(caught.value)
    assert caught.value.details["faults"][0]["message"] in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\0" * 100, "it is empty"),
        (b"[1]", "not a JSON object"),
        (b'{"graphs": {}}', "format: must be"),
        (b'{"format": "design-knowledge-graph", "version": 2, "graphs": {}}', "format: must be"),
        (b'{"graphs": {}, "graphs": {}}', "appears twice"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{\n<<<<<<< HEAD\n"a": 1\n=======\n"a": 2\n>>>>>>> other\n}', "unresolved merge"),
        (
            b'{"format": "design-knowledge-graph", "version": 1, "graphs": {"../x": {}}}',
            "'../x' is not a valid graph id",
        ),
    ],
)
def test_what_is_no_graph_file_is_refused_and_left_alone(path, open_store, content, message):
    path.parent.mkdir()
    path.write_bytes(content)
    graph = open_store()
    with pytest.raises(GraphFileError, match="cannot be used") as caught:
        graph.list_nodes("g")
    assert message in str(caught.value)
    with pytest.raises(GraphFileError):
        graph.init("g")
    assert path.read_bytes() == content


def test_a_graph_written_by_hand_from_nothing_is_taken(path, open_store):
    path.parent.mkdir()
    path.write_text(
        '{"format": "design-knowledge-graph", "version": 1, "graphs": {"g": {"nodes": [{"id": "a", "type": "Plan"}]}}}'
    )
    graph = open_store()
    assert ids(graph) == ["a"]
    add(graph, "b")
    assert ids(open_store()) == ["a", "b"]


def test_another_version_from_version_control_is_taken_by_a_warm_reader(path, open_store):
    """As ``git switch`` does: the file is another one."""
    warm = open_store()
    add(warm, "a", "b")
    branch = path.read_bytes()
    path.unlink()
    other = open_store(path)
    add(other, "x", "y")
    path_of_other = path.read_bytes()
    assert len(json.loads(branch)["graphs"]["g"]["nodes"]) == 2
    assert ids(warm) == ["x", "y"]
    path.write_bytes(branch)
    assert ids(warm) == ids(other) == ["a", "b"]
    path.write_bytes(path_of_other)
    add(other, "z")
    assert ids(warm) == ["x", "y", "z"]


def test_a_leftover_of_an_interrupted_snapshot_does_no_harm(path, open_store):
    graph = open_store()
    add(graph, "a")
    path.with_name(".graph.json.0123456789ab.part").write_bytes(b"half")
    assert ids(open_store()) == ["a"]
    add(graph, "b")
    assert ids(open_store()) == ["a", "b"]
    assert sorted(file.name for file in path.parent.iterdir()) == ["graph.json", "graph.json.lock"]


@pytest.mark.parametrize("victim", ["graph.json", "graph.json.lock"])
def test_a_file_deleted_under_a_warm_process_is_noticed(path, open_store, victim):
    warm, other = open_store(), open_store()
    add(warm, "a")
    ids(other)
    path.with_name(victim).unlink()
    expected = [] if victim == "graph.json" else ["a"]
    assert ids(warm) == expected
    add(other, "b")
    add(warm, "c")
    assert ids(warm) == ids(other) == ids(open_store()) == [*expected, "b", "c"]


def test_a_link_to_the_graph_is_followed_and_stays_a_link(path, open_store, tmp_path):
    add(open_store(), "a")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    through = open_store(link)
    add(through, "b")
    assert link.is_symlink()
    assert ids(open_store()) == ["a", "b"]


def test_the_files_permissions_are_kept(path, open_store):
    graph = open_store()
    add(graph, "a")
    path.chmod(0o640)
    add(graph, "b")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["folder", "pipe", ".lock pipe"])
def test_what_is_no_regular_file_is_refused_without_hanging(path, open_store, kind):
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path.with_name(f"graph.json{kind.removesuffix(' pipe').removesuffix('pipe')}"))
    graph = open_store()
    calls = [lambda: graph.list_nodes("g"), lambda: graph.create_node("g", "a", "Signal")]
    for call in calls[kind == ".lock pipe" :]:  # readers take no lock
        with pytest.raises(GraphError, match=r"regular file|Is a directory"):
            call()


def test_a_project_that_cannot_be_written_says_what_to_set(tmp_path, open_store):
    (tmp_path / "file").write_text("x")
    graph = open_store(tmp_path / "file" / "graph.json")
    with pytest.raises(GraphFileError, match="set CHIPFORGE_PROJECT"):
        graph.create_node("g", "a", "Signal")
