"""A graph as one HTML file with search, neighbourhoods and properties, which loads nothing from elsewhere.

The graph is embedded as JSON in which markup is escaped, the script inserts text only as text, and the security policy
of the page allows only this script, by its digest.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designgraph.exchange import xml_text
from designgraph.pictures.layered import arrange
from designgraph.pictures.svg import box_size

if TYPE_CHECKING:
    from designgraph.pictures.excerpt import Excerpt

_FOLDER = Path(__file__).parent


def page(picture: Excerpt) -> str:
    """Return the page as HTML text."""
    from jinja2 import Environment, StrictUndefined

    script, style = ((_FOLDER / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    engine = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    return engine.from_string((_FOLDER / "page.html").read_text(encoding="utf-8")).render(
        title=xml_text(f"{picture.graph_id} - design graph"),
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        style=style,
        data=_safe_json(_data(picture)),
        script=script,
    )


def _data(picture: Excerpt) -> dict[str, Any]:
    drawing = arrange({node.id: box_size(node) for node in picture.nodes}, {(r[0], r[1]) for r in picture.relations})
    place = {node.id: index for index, node in enumerate(picture.nodes)}
    nodes = []
    for node in picture.nodes:
        box = drawing.boxes[node.id]
        nodes.append(
            {
                "id": node.id,
                "type": node.type,
                "note": node.note,
                "properties": node.properties,
                "x": round(box.x, 1),
                "y": round(box.y, 1),
                "w": round(box.width, 1),
                "h": round(box.height, 1),
            }
        )
    bends = {
        f"{place[source]} {place[target]}": [[round(x, 1), round(y, 1)] for x, y in points]
        for (source, target), points in drawing.bends.items()
        if points
    }
    return {
        "graph": picture.graph_id,
        "focus": picture.focus,
        "leftOut": picture.left_out,
        "colors": picture.colors,
        "nodes": nodes,
        "bends": bends,
        "relations": [[place[source], place[target], kind] for source, target, kind in picture.relations],
    }


def _safe_json(value: Any) -> str:
    """Return JSON text that cannot close a script element or open a comment in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
