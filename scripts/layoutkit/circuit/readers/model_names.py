"""What a model name of any process says: the device's type, its threshold flavour and its voltage.

Foundries name models by habit, not by standard (``nch_lvt_mac``, ``sky130_fd_pr__pfet_g5v0d10v5``, ``sg13_hv_nmos``,
``n18``, ``lvtpfet``). The patterns below cover the habits; a name they do not cover is not guessed.
"""

from __future__ import annotations

import re

from layoutkit.technology.device_kinds import KINDS

_PREFIX = re.compile(r"^(?:sky130_fd_pr__|sky130_|sg13g2_|sg13_|gf180mcu_|gf180_|gf_)(?:model__)?(?:esd_|special_)?")
_STANDARD_CELL = re.compile(
    r"^sky130_(?:fd|ef)_(?:sc|io|bd)_|__(?:inv|buf|nand|nor|dff|mux|tap|fill|decap)|^sg13g2_(?!.*pr_)[a-z]+\d?_\d+$"
)

# Each alternative of a kind's pattern must match the whole of an underscore-separated part of the name. The order of
# the kinds counts: a MOS capacitor is a capacitor ("cap_nmos_03v3"), a tap is not a diode ("ptap1").
_TYPES = tuple(
    (name, re.compile(rf"(?:^|_)(?:{kind.model_names})(?=_|$)")) for name, kind in KINDS.items() if kind.model_names
)
_MOS_NAMES = {
    polarity: re.compile(
        rf"(?:^|_)(?:[a-z]*{polarity}(?:fet|mos)\w*|{polarity}ch\w*|[a-z]*mos{polarity}"
        rf"|(?:[a-z]\d+)?{polarity}\d?(?:svt|lvt|hvt|rvt|nvt|ulvt|slvt)\w*)(?=_|$)"
    )
    for polarity in "np"
}
# On a MOS card the type letter alone is enough: "n", "p33", "N_18_MM", "nm", "ne5", "nel", "mp", "amp_n", "n11ll",
# "pod33ll".
_MOS_LETTERS = {
    polarity: re.compile(
        rf"^m?{polarity}[a-z]?l?\d*(?=_|$)|^{polarity}[a-z]{{0,2}}\d+[a-z]{{0,3}}(?=_|$)|_{polarity}\d*$"
    )
    for polarity in "np"
}
_FLAVOURS = (
    ("native", re.compile(r"nvt|native|zvt|(?:^|_)na(?:_|$)")),
    ("lvt", re.compile(r"lvt")),
    ("hvt", re.compile(r"hvt")),
)
_VOLTAGE = re.compile(r"(?:^|[a-z_])0?(\d{1,2})v(\d)(?!\d)")
_VOLTAGE_AT_END = re.compile(
    r"(?:^|_)[a-z]*0?(\d{1,2})(?:v|p(\d))(?=_|$)"
)  # of a part of the name: "nch_5v", "nmos_6p0_dw"
_TENTHS = re.compile(r"(?:^|_)[a-z]*(12|15|18|25|33|50)(?=_|$)")
_THICK_OXIDE_VOLTS = 3.3
_WIDTH = re.compile(r"_(?!0+p0+$)(\d+)p(\d+)$")


def classify_model(name: str, *, on_mos_card: bool = False) -> str | None:
    """Return the device type that a model or primitive name states, or ``None`` if it states none.

    Args:
        name: Model name of any process.
        on_mos_card: Whether the card already says MOS, so that only n or p is in question.
    """
    lowered = name.lower()
    if _STANDARD_CELL.search(lowered):
        return None
    bare = _PREFIX.sub("", lowered).replace(".", "_").replace("-", "_")
    if not on_mos_card:
        for device_type, pattern in _TYPES:
            if pattern.search(bare):
                return device_type
    for patterns in (_MOS_NAMES, _MOS_LETTERS) if on_mos_card else (_MOS_NAMES,):
        is_n, is_p = (bool(patterns[polarity].search(bare)) for polarity in "np")
        if is_n != is_p:
            return "nmos" if is_n else "pmos"
    return None


def threshold_flavour(name: str) -> str:
    """Return ``lvt``, ``hvt``, ``native``, or ``""`` for a regular threshold."""
    lowered = name.lower()
    return next((flavour for flavour, pattern in _FLAVOURS if pattern.search(lowered)), "")


def rated_voltage(name: str) -> float:
    """Return the supply [V] a model name states, 3.3 for a thick-oxide name without number, 0 when it says nothing."""
    bare = _PREFIX.sub("", name.lower())
    match = _VOLTAGE.search(bare) or _VOLTAGE_AT_END.search(bare)
    if match:
        return float(f"{match[1]}.{match[2] or 0}")
    match = _TENTHS.search(bare)
    if match:
        return int(match[1]) / 10
    return _THICK_OXIDE_VOLTS if re.search(r"(?:^|_)(?:hv|io|eg|thk|thick)(?:_|[np]|$)", bare) else 0.0


def width_in_name(name: str) -> float | None:
    """Return the width [m] that a resistor's model states, as ``_1p41`` for 1.41 um; None where it states none."""
    found = _WIDTH.search(name)
    return None if found is None else float(".".join(found.groups())) * 1e-6
