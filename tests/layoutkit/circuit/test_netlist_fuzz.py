"""Whatever is read, the answer is a circuit or an error with a code: never a crash."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layoutkit.circuit import read_netlist, recognise, write_spice
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.errors import LayoutkitError
from thorough import examples

TOKENS = r"""
.subckt .ends .param .include .lib .endl .model .global .option .end .if .foo . .. subckt ends topckt parameters inline
**.subckt **.ends a b x y 0 vdd! M1 M2 X1 X2 R1 C1 Q1 D1 V1 L1 J1 xI<1> nmos pmos n npn sky130_fd_pr__nfet_01v8 res
cap tap
1u 1k 10 1e999 w=1u l=1u w=p l='p*2' nf=2 m=3 m=p p=1 p=q q=p scale=1e-6 w= = == ( ) { } ' " \ + * $ ; // / $[r] $PINS
a=b
.control .endc .inc x.lib tran dc info sweep statistics if simulator lang=spectre section model XM1<1:0>
a<1:0> <*2>a 2* + - /VDD net@1 A -1f **FLOATING
, $W=1u section=tt params: 'x+1' {y} mult=2 nfin=4 stack=2 off
"""
STATEMENTS = st.lists(st.lists(st.sampled_from(TOKENS.split()), max_size=9).map(" ".join), max_size=12).map("\n".join)
CIRCUITS = STATEMENTS.map(lambda body: f".subckt a x y vdd 0\n.param p=1u\n{body}\n.ends\n")

KEYS = st.sampled_from(
    ["cells", "top", "name", "devices", "ports", "instances", "terminals", "params", "id", "type", "w"]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=examples(600), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(STATEMENTS | CIRCUITS | st.text(max_size=200))
def test_any_text_gives_a_circuit_or_an_error_with_a_code(tmp_path, text):
    path = tmp_path / "fuzz.sp"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        circuit = read_netlist(path, netlist_format="spice")
    except LayoutkitError as error:
        assert error.code == "INVALID_PARAM"  # noqa: PT017 - a circuit is an answer, too
    else:
        assert circuit_from_json(json.loads(json.dumps(circuit.to_json()))) == circuit
        path.write_text(write_spice(circuit), encoding="utf-8")
        again = read_netlist(path)
        assert (again.ports, len(again.devices)) == (circuit.ports, len(circuit.devices))


@settings(max_examples=examples(300), deadline=None)
@given(DOCUMENTS)
def test_any_document_gives_a_circuit_or_an_error_with_a_code(document):
    try:
        circuit = circuit_from_json(document)
    except LayoutkitError as error:
        assert error.code == "INVALID_PARAM"  # noqa: PT017 - a circuit is an answer, too
    else:
        recognise(circuit)
        assert circuit_from_json(circuit.to_json()) == circuit
