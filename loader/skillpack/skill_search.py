"""Search skills by words, and rank texts by the words of a query, for ``skillpack search`` and for intents.

BM25F over a name, a description, a declaration, the opening of a body and its sections. Robertson, Zaragoza: "The
Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.6. The length of a field is counted in
characters. There is no index: counting the few terms of the query in every text costs less than splitting every text
into words. A term is a word without its English ending, so that "routing" finds "routes", or, in scripts without
blanks, each pair of neighbouring characters. Two adjacent words are a term of their own: where all skills are about
the same subject, each single word is common, and only a phrase such as "layout matches" is specific. "Guardring" finds
"guard ring" and the reverse, "optimise" finds "optimize".

Requests of users that a text serves are compared as questions: there the words that only join others count, too, by
half, because "how long is the wire" and "make the wire long" differ in nothing else. What counts is the request that
is most like the query, and, as in a naive Bayes classifier, the logarithm of how many requests have each of its terms.
"""

# Paths stay strings, as in the catalogue.
# ruff: noqa: PTH118
from __future__ import annotations

import glob
import math
import os
import re
import unicodedata
from bisect import bisect_right
from collections import Counter as Tally
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.exceptions import FileRefusedError, SkillFileError
from skillpack.skills.skill_md import DECLARATION_FILE
from skillpack.untrusted.file_access import read_bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillpack.skills.skill_md import Skill

    Counter = Callable[[str], int]
    Finder = Callable[[str], Iterator[int]]

MAX_TERMS = 32
MAX_QUERY = 2000
SATURATION = 1.2  # how soon further occurrences of a term stop counting (k1)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_WORD = r"[^\W_]"  # in folded text, where a blank parts the scripts: to compile a class with _CJK takes 6 ms
_WORDS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_SCRIPT_ENDS = re.compile(rf"(?<=[{_CJK}])(?=[^\W_{_CJK}])|(?<=[^\W_{_CJK}])(?=[{_CJK}])")
_IS_CJK = re.compile(rf"[{_CJK}]")
_ENDING = "(?:ations?|ators?|ated|ates?|ating|ings?|e?ments?|ances?|ences?|ies|ied|ions?|ors?|ers?|ed|es|ly|s|y|e)"
_ENDINGS = re.compile(f"{_ENDING}$")
_MIN_STEM = 3
_JOINING = re.compile(
    "about|also|an|and|any|are|as|at|be|been|but|by|can|could|do|does|for|from|get|give|go|has|have|how|if|in|into|is|it|its"
    "|just|like|me|my|need|not|of|on|one|or|our|please|should|so|some|than|that|the|their|them|then|there|these|they|this|to"
    "|us|use|want|was|we|what|when|where|which|who|why|will|with|would|you|your"
)
_GAP = r"(?:[^\w.,;:!?()]|_){1,3}"  # blanks, hyphens and the like, but nothing that ends a clause
_PART_GAP = "[ -]?"  # between the letters of a word that texts may write as two
_BETWEEN = rf"(?:{_GAP}(?:{_JOINING.pattern})){{0,3}}{_GAP}"  # layout of the gate
_EXCERPT = 160
_MAX_DECLARATION_BYTES = 1 << 18
_MAX_PAGES = 8
_MAX_PAGE_BYTES = 1 << 13
_NOT_FOR = re.compile(r"\b(?:not (?:for|needed)|(?:do not|don't|never) use)\b[^.;\u3002]*")
# Keys of skill.yaml, and values that are no words of users. To parse the file would cost more than the search.
_STRUCTURE = re.compile(
    r"\b(?:models|context|cost|annotations): ?\{[^}]*\}"
    r"|\b(?:skill|version|toolsets|script|input_schema|output_schema|composable|dependencies):[^\n,}]*"
    r"|\b(?:tools|id|display_name|description|intent_tags|en|zh):"
)
_CLAUSE_END = re.compile(r"[.;:,]\s+|\u3002")
_ASKS = re.compile(r"^asks:\n((?:- .*\n?)+)", re.MULTILINE)


_compiled = lru_cache(maxsize=2048)(re.compile)  # half the time of a search; words come again


class Fields(NamedTuple):
    """The texts by which a skill or tool is ranked, folded.

    Attributes:
        name: Its name.
        description: What it is for.
        sections: The sections of its manual. Their examples, formats and errors also name what other skills are for.
        declaration: What its tools are called, and the intents that they serve.
        opening: The manual before its first section: title, words of users, table of tasks.
        asks: Requests of users that it serves, one a line, each but the last with a full stop at its end.
    """

    name: str
    description: str
    sections: str = ""
    declaration: str = ""
    opening: str = ""
    asks: str = ""

    def weighed(self) -> tuple[str, ...]:
        """Return the fields that ``WEIGHTS`` weighs."""
        return self.name, self.description, self.sections, self.declaration, self.opening


# In the order of the fields, without the requests.
WEIGHTS = (4.0, 3.0, 0.3, 3.0, 2.0)
LENGTH_SHARES = (0.0, 0.5, 0.75, 0.4, 0.4)  # how much the length of a field reduces its weight (b)
ASK_WEIGHT, COMMON_WEIGHT = 0.4, 0.1  # of the most similar request, and of the number of requests with the terms
_ASK_CHARACTERS = 6  # of a word, about; a request is compared by its length in words
_ASK_SMOOTHING = 0.1  # of the numbers of requests, as in a naive Bayes classifier
_PART_WEIGHT = 0.5  # of words that only join others, and of pairs of words, each of which counts already


class Term(NamedTuple):
    """What is searched for in folded text.

    Attributes:
        stem: Text that every occurrence contains.
        expression: Regular expression for all forms of a word, or of two adjacent words, that begins with ``stem``; ""
            if ``stem`` itself is searched for.
        second_stem: The stem of the second of two words.
        weight: How much it counts.
    """

    stem: str
    expression: str = ""
    second_stem: str = ""
    weight: float = 1.0

    def counter(self) -> Counter:
        """Return a function that counts the occurrences of the term in a folded text."""
        if not self.expression:
            return lambda text: text.count(self.stem)
        stem, second_stem, expression = self.stem, self.second_stem, self.expression
        return lambda text: len(_compiled(expression).findall(text)) if stem in text and second_stem in text else 0

    def finder(self) -> Finder:
        """Return a function that yields where the term occurs in a folded text."""
        stem, second_stem, expression = self.stem, self.second_stem, self.expression or re.escape(self.stem)
        return lambda text: (
            (found.start() for found in _compiled(expression).finditer(text))
            if stem in text and second_stem in text
            else iter(())
        )


class Ranking(NamedTuple):
    """The score of each text, 0 where no term occurs, and the weight of each term: rare terms weigh more."""

    scores: list[float]
    rarities: list[float]


def rank(texts: Sequence[Fields], terms: Sequence[Term], joining: Sequence[Term] = ()) -> Ranking:
    """Return the BM25F scores of ``texts`` in their order.

    Args:
        texts: What to rank.
        terms: The terms of the query.
        joining: Further terms, by which only requests are compared (``joining_terms_of``).
    """
    counters = [term.counter() for term in terms]
    hits = [[[count(field) for count in counters] for field in fields.weighed()] for fields in texts]
    having = [0] * len(terms)
    for rows in hits:
        for index, column in enumerate(zip(*rows, strict=True)):
            having[index] += any(column)
    rarities = [_rarity(number, len(texts)) for number in having]
    lengths = [[len(field) for field in fields.weighed()] for fields in texts]
    means = [max(1.0, sum(column) / len(texts)) for column in zip(*lengths, strict=True)]
    asked = _asked([fields.asks for fields in texts], terms, joining)
    scores = [_score(*pair, means, rarities) for pair in zip(hits, lengths, strict=True)]
    return Ranking([score + more for score, more in zip(scores, asked, strict=True)], rarities)


def _asked(texts: Sequence[str], terms: Sequence[Term], joining: Sequence[Term]) -> list[float]:
    """Return for each text of requests how much its requests have in common with the query.

    ``joining`` counts only in requests that have one of ``terms``.
    """
    finders = [term.finder() for term in (*terms, *joining)]
    found = [_terms_by_line(text, finders) for text in texts]
    numbers = [text.count("\n") + 1 if text else 0 for text in texts]
    total = sum(numbers)
    having = Tally(index for lines in found for _, held in lines for index in held)
    rarities = [term.weight * _rarity(having[index], total) for index, term in enumerate((*terms, *joining))]
    mean = total / max(1, sum(map(bool, numbers)))
    found = [[line for line in lines if line[1][0] < len(terms)] for lines in found]
    return [
        ASK_WEIGHT * _likest(lines, rarities) + _common(lines, rarities, 2 * mean / max(1, mean + number))
        for lines, number in zip(found, numbers, strict=True)
    ]


def _terms_by_line(text: str, finders: Sequence[Finder]) -> list[tuple[int, list[int]]]:
    """Return the lines of a text that have a term: their lengths, and the indices of their terms."""
    found: dict[int, list[int]] = {}
    starts = _line_starts(text)
    for index, find in enumerate(finders):
        for line in {bisect_right(starts, place) - 1 for place in find(text)}:
            found.setdefault(line, []).append(index)
    return [(starts[line + 1] - starts[line] - 1, held) for line, held in found.items()]


@lru_cache(maxsize=128)  # a server searches the same texts again and again
def _line_starts(text: str) -> list[int]:
    """Return where each line of a text begins, and where a further one would."""
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def _likest(lines: Sequence[tuple[int, Sequence[int]]], rarities: Sequence[float]) -> float:
    """Return how much the request that is most like the query has in common with it."""
    return max(
        (
            sum(rarities[index] for index in held) / math.sqrt(_ASK_CHARACTERS + length / _ASK_CHARACTERS)
            for length, held in lines
        ),
        default=0.0,
    )


def _common(lines: Sequence[tuple[int, Sequence[int]]], rarities: Sequence[float], factor: float) -> float:
    """Return how many requests have terms of the query, as a sum of logarithms.

    A term counts by its rarity, times the logarithm of the number of requests that have it, as in a naive Bayes
    classifier; 0 if none has it. ``factor`` compensates for texts with more requests than others.
    """
    counts = Tally(index for _, held in lines for index in held)
    return COMMON_WEIGHT * sum(rarities[index] * math.log1p(factor * n / _ASK_SMOOTHING) for index, n in counts.items())


def _score(
    hits: Sequence[Sequence[int]], lengths: Sequence[int], means: Sequence[float], rarities: Sequence[float]
) -> float:
    """Return the score of one text from its hits by field and term."""
    factors = [
        weight / (1 - share + share * length / mean)
        for weight, share, length, mean in zip(WEIGHTS, LENGTH_SHARES, lengths, means, strict=True)
    ]
    total = 0.0
    for rarity, column in zip(rarities, zip(*hits, strict=True), strict=True):
        frequency = sum(factor * count for factor, count in zip(factors, column, strict=True))
        total += rarity * frequency / (SATURATION + frequency)
    return total


def _rarity(having: int, total: int) -> float:
    """Return the weight of a term that ``having`` of ``total`` texts contain (inverse document frequency, positive)."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


@lru_cache(maxsize=128)
def folded(text: str) -> str:
    """Return text without differences of case and width, with a blank between a script without blanks and others."""
    if text.isascii():
        return text.lower()
    text = (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).casefold()
    return _SCRIPT_ENDS.sub(" ", text)


def words_of(text: str) -> list[str]:
    """Return the folded words of a text; a run of characters in a script without blanks is one."""
    return _WORDS.findall(folded(text[:MAX_QUERY]))


def terms_of(text: str, most: int | None = None) -> list[Term]:
    """Return the terms of a text without repetitions.

    Stop words, single letters and single digits are left out unless there are no other words.

    Args:
        text: A query or a tag.
        most: Maximum number of terms; by default unlimited.
    """
    words = words_of(text)
    telling = [word for word in words if not _JOINING.fullmatch(word) and (len(word) > 1 or _IS_CJK.match(word))]
    found: list[Term] = []
    previous = ""
    for word in telling or words:
        if _IS_CJK.match(word):
            found += [Term(word[index : index + 2]) for index in range(max(1, len(word) - 1))]
            previous = ""
            continue
        term = _word_term(word)
        found.append(term)
        if previous:
            first, joined = _word_term(previous), _word_term(previous + word)
            either = f"{first.expression}{_BETWEEN}{term.expression}|{joined.expression}"
            found.append(Term(first.stem, either, term.stem, _PART_WEIGHT))
        previous = word
    return list(dict.fromkeys(found))[:most]


def joining_terms_of(text: str, most: int | None = None) -> list[Term]:
    """Return the terms that ``terms_of`` leaves out: words that only join others, and pairs of words with one of them.

    Args:
        text: A query.
        most: Maximum number of terms; by default unlimited.
    """
    words = [word for word in words_of(text) if not _IS_CJK.match(word)]
    joins = [bool(_JOINING.fullmatch(word)) for word in words]
    if all(joins):
        return []
    terms = [_word_term(word) for word in words]
    found = [term._replace(weight=_PART_WEIGHT) for term, is_so in zip(terms, joins, strict=True) if is_so]
    for index, (one, two) in enumerate(pairwise(terms)):
        if joins[index] or joins[index + 1]:
            found.append(Term(one.stem, one.expression + _GAP + two.expression, two.stem, _PART_WEIGHT))
    return list(dict.fromkeys(found))[:most]


def _word_term(word: str) -> Term:
    """Return the term of a word: all its English forms, or the word itself in other scripts."""
    stem, endings = word, ""
    if word.isascii() and word.isalpha() and len(word) >= _MIN_STEM:
        cut = _ENDINGS.sub("", word)
        stem = cut if len(cut) >= _MIN_STEM else word
        endings = f"{stem[-1]}?{_ENDING}?"  # fit, fitting
    split = _MIN_STEM if endings and len(stem) >= 2 * _MIN_STEM else len(stem)
    rest = re.sub("[sz]$", "[sz]", _PART_GAP.join(["", *stem[split:]]))  # guardring, guard ring; optimise, optimize
    literal = re.escape(stem[:split])  # the look-behind follows it, because a pattern that begins with one is fast
    return Term(stem[:split], rf"{literal}(?<!{_WORD}{literal}){rest}{endings}(?!{_WORD})")


class Match(NamedTuple):
    """A skill that fits a query.

    Attributes:
        skill: The skill.
        score: How well it fits; comparable within one search only.
        excerpt: The line of its body that fits best; "" if no line contains a term.
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


def search(skills: Iterable[Skill], query: str, limit: int) -> tuple[list[Match], int]:
    """Return the skills that fit ``query`` best, and the number of all skills that contain a term of it.

    Args:
        skills: Skills to search; skills with equal scores keep their order.
        query: Words.
        limit: Maximum number of skills to return.
    """
    candidates, terms = list(skills), terms_of(query, MAX_TERMS)
    if not terms:
        return [], 0
    ranking = rank([_fields(skill) for skill in candidates], terms, joining_terms_of(query, MAX_TERMS))
    matches = sorted(
        ((score, skill) for score, skill in zip(ranking.scores, candidates, strict=True) if score > 0),
        key=lambda match: -match[0],
    )
    counters = [(term.counter(), rarity) for term, rarity in zip(terms, ranking.rarities, strict=True)]
    best = matches[: max(limit, 0)]
    return [Match(skill, score, _excerpt(skill, counters)) for score, skill in best], len(matches)


def _fields(skill: Skill) -> Fields:
    """Return the texts to search, without the part of the description that says what the skill is not for."""
    description = _NOT_FOR.sub("", folded(skill.description))
    opening, _, sections = folded(_body(skill)).partition("\n## ")
    pages = sorted(glob.glob(os.path.join(glob.escape(skill.dir), "references", "*.md")))[:_MAX_PAGES]  # noqa: PTH207
    sections += folded("".join(_text(page, _MAX_PAGE_BYTES) for page in pages))  # read when they are needed
    asks, declaration = _declared(_text(os.path.join(skill.dir, DECLARATION_FILE), _MAX_DECLARATION_BYTES))
    name = folded(skill.name)
    asks = asks or f"{name}.\n" + _CLAUSE_END.sub(".\n", description)  # else a skill without any would come last
    return Fields(name, description, sections, declaration, opening, asks)


@lru_cache(maxsize=128)
def _declared(text: str) -> tuple[str, str]:
    """Return the requests that a declaration states, one a line, and the rest of its words."""
    declared = folded(text)
    asks = ".\n".join(line[2:] for block in _ASKS.findall(declared) for line in block.splitlines())
    return asks, _STRUCTURE.sub("", _ASKS.sub("", declared))


def _text(path: str, most: int) -> str:
    """Return the text of a file of at most so many bytes; "" if it is missing or cannot be read."""
    try:
        return read_bounded(path, most, follow=False).decode("utf-8", "replace")
    except (FileNotFoundError, FileRefusedError):
        return ""


def _body(skill: Skill) -> str:
    """Return the body of a skill; "" if it can no longer be read."""
    try:
        return skill.body
    except (FileNotFoundError, SkillFileError):
        return ""


def _excerpt(skill: Skill, counters: Sequence[tuple[Counter, float]]) -> str:
    """Return the line of a skill's body that contains the rarest terms, shortened."""
    best, value = "", 0.0
    body = _body(skill)
    for line, text in zip(body.split("\n"), folded(body).split("\n"), strict=True):
        found = sum(rarity for count, rarity in counters if count(text))
        if found > value:
            best, value = line, found
    shown = " ".join(best.split())
    return shown if len(shown) <= _EXCERPT else shown[:_EXCERPT].rstrip() + "..."
