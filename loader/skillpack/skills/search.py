"""Which skills fit a query: BM25F over names, descriptions, bodies, and what skill.yaml says of the tools.

Robertson, Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.6. The length of a field
is counted in characters. No index is kept: the query's few terms are looked for in every text, which costs less than
cutting every text into words. A term is a word without its English ending, so that "routing" finds "routes", or, in
writing without blanks, each pair of neighbouring characters. Two words that stand together are a term of their own:
where every skill is about one field each word is common, and only "layout matches" tells one from another.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.errors import FileRefusedError, SkillFileError
from skillpack.skills.files import read_bounded
from skillpack.skills.skill_md import DECLARATION_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillpack.skills.skill_md import Skill

WEIGHTS = (4.0, 3.0, 1.0, 1.5)  # name, description, body, declaration
LENGTH_SHARE = (0.0, 0.5, 0.75, 0.75)  # how much a long field counts less (b)
SATURATION = 1.2  # how soon more of the same term stops counting (k1)
MAX_TERMS = 32
MAX_QUERY = 2000
_EXCERPT = 160
_MAX_DECLARATION_BYTES = 1 << 18
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_WORD = rf"[^\W_{_CJK}]"
_WORDS = re.compile(rf"[{_CJK}]+|{_WORD}+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_ENDING = "(?:ations?|ators?|ated|ates?|ating|ings?|ies|ied|ions?|ors?|ers?|ed|es|s|y|e)"
_ENDINGS = re.compile(f"{_ENDING}$")
_MIN_STEM = 3
_JOINING = re.compile(
    "about|also|an|and|any|are|as|at|be|been|but|by|can|could|do|does|for|from|get|give|go|has|have|how|if|in|into|is|it|its"
    "|just|like|me|my|need|not|of|on|one|or|our|please|should|so|some|than|that|the|their|them|then|there|these|they|this|to"
    "|us|use|want|was|we|what|when|where|which|who|why|will|with|would|you|your"
)
_GAP = r"(?:[^\w.,;:!?()]|_){1,3}"  # blanks, hyphens and the like, but nothing that ends a clause
_BETWEEN = rf"(?:{_GAP}(?:{_JOINING.pattern})(?!{_WORD})){{0,3}}{_GAP}"  # layout of the gate
_NOT_FOR = re.compile(r"\b(?:not (?:for|needed)|(?:do not|don't|never) use)\b[^.;\u3002]*")


class Match(NamedTuple):
    """A skill that fits.

    Attributes:
        skill: The skill.
        score: How well; only comparable within one search.
        excerpt: The line of its body that fits best, "" when its name or description alone fits.
    """

    skill: Skill
    score: float
    excerpt: str

    def to_json(self) -> dict[str, Any]:
        """Return name, description, score and excerpt as JSON values."""
        return {
            "name": self.skill.name,
            "description": self.skill.summary,
            "score": round(self.score, 3),
            "excerpt": self.excerpt,
        }


class Term(NamedTuple):
    """What is looked for in folded text.

    Attributes:
        stem: Text that is in every occurrence.
        forms: Expression of the forms of a word, or of two together, beginning with ``stem``; None where ``stem`` is to
            be found as it is.
        second_stem: The same as ``stem`` of the second of two words.
    """

    stem: str
    forms: re.Pattern[str] | None = None
    second_stem: str = ""

    def count(self, text: str) -> int:
        """Return how often the term occurs in ``text``, as a word of its own if it is one."""
        if self.forms is None:
            return text.count(self.stem)
        if self.stem not in text or self.second_stem not in text:
            return 0
        return len(self.forms.findall(text))


def search(skills: Iterable[Skill], query: str, limit: int) -> tuple[list[Match], int]:
    """Return the skills that fit ``query`` best, and how many fit at all: those in which one of its terms occurs.

    Args:
        skills: What to search; of equally good ones the first comes first.
        query: Words.
        limit: Most skills to return.
    """
    wanted = terms(query)
    found = [(skill, _Counts.of(_fields(skill), wanted)) for skill in skills] if wanted else []
    means = [
        max(1.0, sum(column) / len(found)) for column in zip(*(counts.lengths for _, counts in found), strict=True)
    ]
    rarities = [
        _rarity(sum(any(row[index] for row in counts.hits) for _, counts in found), len(found))
        for index in range(len(wanted))
    ]
    scored = [(counts.score(means, rarities), skill) for skill, counts in found]
    matches = sorted(((score, skill) for score, skill in scored if score > 0), key=lambda match: -match[0])
    best = matches[: max(limit, 0)]
    return [Match(skill, score, _excerpt(skill, wanted, rarities)) for score, skill in best], len(matches)


def terms(query: str) -> list[Term]:
    """Return what ``query`` asks for, each term once.

    Words that only join others, and single letters and digits, are left out unless there is nothing else.
    """
    words = _WORDS.findall(_folded(query[:MAX_QUERY]))
    telling = [word for word in words if not _JOINING.fullmatch(word) and (len(word) > 1 or _IS_CJK.match(word))]
    found: dict[str, Term] = {}
    before: tuple[str, str] | None = None
    for word in telling or words:
        if _IS_CJK.match(word):
            pairs = [word[index : index + 2] for index in range(max(1, len(word) - 1))]
            found.update({pair: Term(pair) for pair in pairs})
            before = None
            continue
        stem, forms = _forms(word)
        found.setdefault(forms, Term(stem, re.compile(forms)))
        if before is not None:
            together = before[1] + _BETWEEN + forms
            found.setdefault(together, Term(before[0], re.compile(together), stem))
        before = stem, forms
    return list(found.values())[:MAX_TERMS]


def _forms(word: str) -> tuple[str, str]:
    """Return what a word begins with in every form, and the expression of its forms: English ones, or itself alone."""
    stem, endings = word, ""
    if word.isascii() and word.isalpha() and len(word) >= _MIN_STEM:
        cut = _ENDINGS.sub("", word)
        stem = cut if len(cut) >= _MIN_STEM else word
        endings = f"{stem[-1]}?{_ENDING}?"  # fit, fitting
    literal = re.escape(stem)  # the look-behind follows it, because a pattern that begins with a literal is fast
    return stem, rf"{literal}(?<!{_WORD}{literal}){endings}(?!{_WORD})"


class _Counts(NamedTuple):
    """How often the terms occur in one skill: ``hits`` by field and term, and the lengths of the fields."""

    hits: list[list[int]]
    lengths: list[int]

    @classmethod
    def of(cls, fields: Sequence[str], wanted: Sequence[Term]) -> _Counts:
        """Return the counts in these fields."""
        return cls([[term.count(text) for term in wanted] for text in fields], [len(text) for text in fields])

    def score(self, means: Sequence[float], rarities: Sequence[float]) -> float:
        """Return the BM25F score."""
        factors = [
            weight / (1 - share + share * length / mean)
            for weight, share, length, mean in zip(WEIGHTS, LENGTH_SHARE, self.lengths, means, strict=True)
        ]
        total = 0.0
        for rarity, column in zip(rarities, zip(*self.hits, strict=True), strict=True):
            frequency = sum(factor * count for factor, count in zip(factors, column, strict=True))
            total += rarity * frequency / (SATURATION + frequency)
        return total


def _fields(skill: Skill) -> tuple[str, ...]:
    """Return name, description, body and declaration as they are searched: without what the skill is not for."""
    name, description, body, declaration = map(
        _folded, (skill.name, skill.description, _body(skill), _declaration(skill))
    )
    return name, _NOT_FOR.sub("", description), body, declaration


def _declaration(skill: Skill) -> str:
    """Return the text of skill.yaml, which is not parsed; "" where there is none that can be read."""
    path = os.path.join(skill.dir, DECLARATION_FILE)  # noqa: PTH118 - a text, as in the catalogue
    try:
        return read_bounded(path, _MAX_DECLARATION_BYTES, follow=False).decode("utf-8", "replace")
    except (FileNotFoundError, FileRefusedError):
        return ""


def _body(skill: Skill) -> str:
    """Return the body of a skill; one that cannot be read any more is empty."""
    try:
        return skill.body
    except (FileNotFoundError, SkillFileError):
        return ""


def _folded(text: str) -> str:
    """Return text without differences of case and width, line by line."""
    if text.isascii():
        return text.lower()
    return (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).casefold()


def _rarity(having: int, total: int) -> float:
    """Return how much it says that a skill has a term (inverse document frequency, never negative)."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _excerpt(skill: Skill, wanted: Sequence[Term], rarities: Sequence[float]) -> str:
    """Return the line of a skill's body in which the rarest terms occur, shortened."""
    best, value = "", 0.0
    for line in _body(skill).split("\n"):
        folded = _folded(line)
        found = sum(rarity for term, rarity in zip(wanted, rarities, strict=True) if term.count(folded))
        if found > value:
            best, value = line, found
    text = " ".join(best.split())
    return text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "..."
