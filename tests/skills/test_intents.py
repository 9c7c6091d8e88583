"""A user's words, English or Chinese, reach the tool that serves them."""

import pytest

from pack_tools import pack_tools
from skillpack import SkillRegistry


@pytest.fixture(scope="module")
def registry():
    return SkillRegistry.from_tools(pack_tools())


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("lay out my op amp", "flow.build_layout"),
        ("自动版图", "flow.build_layout"),
        ("connect two pins with metal 2", "layout.route_signal_nets_basic"),
        ("which rule is violated and where", "drc.run_check"),
        ("检查设计规则", "drc.run_check"),
        ("画一个电流镜", "layout.create_current_mirror"),
        ("共质心差分对", "layout.create_common_centroid_pair"),
        ("查看版图图片", "layout.render_view"),
        ("电容", "layout.create_capacitor"),
        ("版图面积多大", "eval.compute_metrics"),
        ("解析网表", "netlist.parse"),
        ("为什么短路", "lvs.run_check"),
        ("compare layout with netlist", "lvs.run_check"),
        ("compare the netlist with the layout", "lvs.run_check"),
        ("does the layout match the schematic", "lvs.run_check"),
    ],
)
def test_the_first_tool_for_an_intent_is_the_one_that_serves_it(registry, words, tool):
    assert registry.get_skills_by_intent(words)[0].name == tool


@pytest.mark.parametrize("words", ["verify my layout", "验证版图"])
def test_a_wish_to_verify_leads_to_both_checks(registry, words):
    assert {found.name for found in registry.get_skills_by_intent(words)[:2]} == {"drc.run_check", "lvs.run_check"}
