"""Writes design rules as a deck for the KLayout application: another language, another version of the engine.

Only kinds that a deck states in a call or two are written; ``WRITTEN`` names them.
"""

import ast

from drc_sketch import cases

_SELECTIONS = {"interacting", "not_interacting", "overlapping", "not_overlapping", "inside", "not_inside"}
_METRICS = {"euclidean": "euclidian", "projection": "projection", "square": "square"}


def deck_of(technology, rules, head=""):
    """Return the text of a deck with those of ``rules`` that can be written; ``head`` follows ``report``."""
    lines = ["source($input, $topcell)", 'report("own rules", $report)', head]
    for rule in rules:
        for fields in cases(rule, technology):
            lines += [f'({text}).output("{rule.id}")' for text in WRITTEN[rule.kind](_Ruby(technology), rule, fields)]
    return "\n".join(lines) + "\n"


def writable(rule, technology):
    """Return whether this writer has words for ``rule``."""
    known = {"layer", "other", "inner", "outer", "metrics", "min_projection_um", "longer_um"}
    plain = all(set(fields) - known <= _extra(rule.kind, fields) for fields in cases(rule, technology))
    return rule.kind in WRITTEN and plain and "own(" not in str(rule.options)  # a deck has no such selection


def _extra(kind, fields):
    return {"active"} if kind.startswith("gate") else ({"notches"} if fields.get("notches") == "ignored" else set())


class _Ruby:
    def __init__(self, technology):
        self.technology = technology

    def __call__(self, text):
        return self._node(ast.parse(str(text), mode="eval").body)

    def _node(self, node):
        if isinstance(node, ast.Name | ast.Attribute):
            return self._layer(ast.unparse(node))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return f"input({node.left.value}, {node.right.value})"
        if isinstance(node, ast.BinOp):
            sign = {ast.BitAnd: "&", ast.BitOr: "|", ast.Add: "|", ast.Sub: "-", ast.BitXor: "^"}[type(node.op)]
            return f"({self._node(node.left)} {sign} {self._node(node.right)})"
        subject = self._node(node.args[0])
        if node.func.id in _SELECTIONS:
            return f"{subject}.{node.func.id}({self._node(node.args[1])})"
        if node.func.id in {"holes", "squares"}:
            return f"{subject}.{node.func.id}"
        return f"{subject}.sized({ast.unparse(node.args[1])}.um)"

    def _layer(self, name):
        technology = self.technology
        if name in technology.derived:
            return self(technology.derived[name])
        for names in (technology.aliases, technology.roles):
            name = name if name in technology.layers else names.get(name, name)
        drawn = {**technology.layers, **technology.other_layers}
        wiring = {technology.resolve(part.layer) for part in (*technology.conductors, *technology.cuts)}
        joined = [drawn[part] for part in drawn[name].fill if name in wiring or drawn[part].purpose != "fill"]
        parts = [drawn[name], *joined]
        inputs = " | ".join(f"input({spec.gds[0]}, {spec.gds[1]})" for spec in parts)
        return f"({inputs})" if len(parts) > 1 else inputs


def _measure(rule, fields):
    words = [f"{rule.value_um}.um", _METRICS[fields.get("metrics", "euclidean")]]
    if "min_projection_um" in fields:
        words.append(f"projecting >= {fields['min_projection_um']}.um")
    return ", ".join(words)


def _one(call):
    return lambda ruby, rule, fields: [f"{ruby(fields['layer'])}.{call}({_measure(rule, fields)})"]


def _space(ruby, rule, fields):
    call = "isolated" if fields.get("notches") == "ignored" else "space"
    return [f"{ruby(fields['layer'])}.{call}({_measure(rule, fields)})"]


def _separation(ruby, rule, fields):
    layer, other = ruby(fields["layer"]), ruby(fields["other"])
    return [f"{layer}.separation({other}, {_measure(rule, fields)})", f"{layer} & {other}"]


def _enclosure(ruby, rule, fields):
    inner, outer = ruby(fields["inner"]), ruby(fields["outer"])
    checked = [f"{outer}.enclosing({inner}, {_measure(rule, fields)})"] if rule.value else []
    return [*checked, f"{inner} - {outer}"]


def _diagonal(edges):
    return f"({edges}.with_angle(45) + {edges}.with_angle(-45))"


def _bent_width(ruby, rule, fields):
    longer = f".with_length({fields['longer_um']}.um + 1.dbu, nil)" if "longer_um" in fields else ""
    edges = f"{ruby(fields['layer'])}.edges"
    return [f"{_diagonal(edges)}{longer}.width({rule.value_um}.um)"]


def _bent_space(ruby, rule, fields):
    edges = f"{ruby(fields['layer'])}.edges"
    return [f"{edges}.sep({_diagonal(edges)}, {rule.value_um}.um)"]


def _gate_width(ruby, rule, fields):
    layer, active = ruby(fields["layer"]), ruby(fields["active"])
    return [f"({layer}.edges & {active}.edges).width({_measure(rule, fields)})"]


def _gate_length(ruby, rule, fields):
    layer, active = ruby(fields["layer"]), ruby(fields["active"])
    return [f"({layer}.edges - {active}.edges).width({_measure(rule, fields)})"]


WRITTEN = {
    "width": _one("width"),
    "notch": _one("notch"),
    "space": _space,
    "separation": _separation,
    "enclosure": _enclosure,
    "gate_width": _gate_width,
    "gate_length": _gate_length,
    "bent_width": _bent_width,
    "bent_space": _bent_space,
    "area": lambda ruby, rule, f: [f"{ruby(f['layer'])}.with_area(0, {rule.value_um}.um)"],
    "hole_area": lambda ruby, rule, f: [f"{ruby(f['layer'])}.holes.with_area(0, {rule.value_um}.um)"],
    "forbidden": lambda ruby, _, f: [ruby(f["layer"])],
    "covered": lambda ruby, _, f: [f"{ruby(f['inner'])} - {ruby(f['outer'])}"],
}
