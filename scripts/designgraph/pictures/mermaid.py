"""A graph as Mermaid flowchart text, which GitHub, GitLab and many agent hosts draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from designgraph.pictures.excerpt import Excerpt

_PLAIN = frozenset(" _-.,:=+*/()!?%@'")


def mermaid(picture: Excerpt) -> str:
    """Return the flowchart. Nodes are called n0, n1, ...: Mermaid reserves words such as ``end``."""
    names = {node.id: f"n{index}" for index, node in enumerate(picture.nodes)}
    lines = ["flowchart LR"]
    if picture.left_out:
        lines.append(f"  %% {picture.left_out}")
    for node in picture.nodes:
        label = escaped(node.id) + (f"<br/>{escaped(node.note)}" if node.note else "")
        lines.append(f'  {names[node.id]}["{label}"]:::{_class(node.type)}')
    lines += [f'  {names[source]} -->|"{escaped(kind)}"| {names[target]}' for source, target, kind in picture.relations]
    lines += [
        f"  classDef {_class(kind)} fill:{color},stroke:#333333,color:#ffffff" for kind, color in picture.colors.items()
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return ``text`` for a quoted Mermaid label, with special characters as entities ``#NUMBER;``."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" if c.isprintable() else " " for c in text)


def _class(node_type: str) -> str:
    return f"type_{node_type}"
