"""The algebra of estimands: probabilities of what is measured, their products, sums and quotients.

An expression is a function of its free variables. A sum binds its variables, so that an inner X and an outer X are two
different things; the text writes the inner one X′. The constructors `product` and `total` simplify as they build:

    Σ_v P(v, a | c) = P(a | c)   where v is nowhere else,     (f / g) · g = f.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Probability:
    """P(targets | given) of the measured distribution."""

    targets: tuple[str, ...]
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Product:
    """The product of factors; of none, 1."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True)
class Sum:
    """The sum of `body` over all states of some variables."""

    over: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class Quotient:
    """`top` divided by `bottom`."""

    top: Expression
    bottom: Expression


Expression = Probability | Product | Sum | Quotient
ONE = Product(())


def free(expression: Expression) -> frozenset[str]:
    """The variables that an expression is a function of."""
    if isinstance(expression, Probability):
        return frozenset((*expression.targets, *expression.given))
    if isinstance(expression, Sum):
        return free(expression.body) - set(expression.over)
    return frozenset(name for part in parts(expression) for name in free(part))


def parts(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is directly made of."""
    if isinstance(expression, Product):
        return expression.factors
    if isinstance(expression, Sum):
        return (expression.body,)
    if isinstance(expression, Quotient):
        return (expression.top, expression.bottom)
    return ()


def probabilities(expression: Expression) -> Iterator[Probability]:
    """The probabilities in an expression, each part once."""
    stack, done = [expression], set()
    while stack:
        one = stack.pop()
        if id(one) in done:
            continue
        done.add(id(one))
        if isinstance(one, Probability):
            yield one
        stack.extend(parts(one))


def product(factors: Iterable[Expression]) -> Expression:
    """The product, nested ones flattened, tops and bottoms that are equal cancelled."""
    flat: list[Expression] = []
    for factor in factors:
        flat += factor.factors if isinstance(factor, Product) else (factor,)
    cancelled = True
    while cancelled:
        cancelled = False
        for i, one in enumerate(flat):
            if not isinstance(one, Quotient):
                continue
            for j, other in enumerate(flat):
                if j != i and (other.top if isinstance(other, Quotient) else other) == one.bottom:
                    merged = Quotient(one.top, other.bottom) if isinstance(other, Quotient) else one.top
                    flat = [merged if k == i else f for k, f in enumerate(flat) if k != j]
                    cancelled = True
                    break
            if cancelled:
                break
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def total(over: Iterable[str], body: Expression) -> Expression:
    """The sum over some variables, those that sum to 1 taken away."""
    names = list(over)
    factors = list(body.factors) if isinstance(body, Product) else [body]
    frees = [free(factor) for factor in factors]
    changed = True
    while changed and names:
        changed = False
        held = Counter(name for names_ in frees for name in names_)
        for name in names:
            if held[name] != 1:
                continue
            k = next(i for i, names_ in enumerate(frees) if name in names_)
            factor = factors[k]
            if not isinstance(factor, Probability) or name not in factor.targets:
                continue
            left = tuple(target for target in factor.targets if target != name)
            if left:
                factors[k] = Probability(left, factor.given)
                frees[k] = free(factors[k])
            else:
                del factors[k], frees[k]
            names.remove(name)
            changed = True
            break
    inner = product(factors)
    return Sum(tuple(names), inner) if names else inner


def quotient(top: Expression, bottom: Expression) -> Expression:
    """The quotient; by 1 it is the top."""
    return top if bottom == ONE else Quotient(top, bottom)


def tidy(expression: Expression) -> Expression:
    """The same function for reading: P(a | b, c) P(b | c) is written P(a, b | c), and sums taken where that helps."""
    if isinstance(expression, Sum):
        return total(expression.over, _merged(tidy(expression.body)))
    if isinstance(expression, Quotient):
        return quotient(tidy(expression.top), tidy(expression.bottom))
    if isinstance(expression, Product):
        return product(tidy(factor) for factor in expression.factors)
    return expression


def _merged(expression: Expression) -> Expression:
    """A product with probabilities joined by the chain rule where one is given exactly what the other speaks of."""
    if not isinstance(expression, Product):
        return expression
    factors = list(expression.factors)
    joined = True
    while joined:
        joined = False
        for i, one in enumerate(factors):
            for j, other in enumerate(factors):
                if i == j or not isinstance(one, Probability) or not isinstance(other, Probability):
                    continue
                if set(one.given) == {*other.targets, *other.given}:
                    factors[j] = Probability((*other.targets, *one.targets), other.given)
                    del factors[i]
                    joined = True
                    break
            if joined:
                break
    return product(factors)


def as_text(expression: Expression, taken: Iterable[str] = ()) -> str:
    """The expression as a line of text; bound variables that are free elsewhere too get primes.

    >>> as_text(total(["Z"], product([Probability(("Z",)), Probability(("Y",), ("X", "Z"))])))
    'Σ_Z P(Y | X, Z) P(Z)'
    """
    return _Text().of(expression, {name: name for name in (*free(expression), *taken)})


def as_latex(expression: Expression, taken: Iterable[str] = ()) -> str:
    """The expression in LaTeX.

    >>> print(as_latex(total(["Z"], product([Probability(("Z",)), Probability(("Y",), ("X", "Z"))]))))
    \\sum_{Z} P(Y \\mid X, Z) \\, P(Z)
    """
    return _Latex().of(expression, {name: name for name in (*free(expression), *taken)})


class _Text:
    """Writes expressions as text."""

    times, bar, prime = " ", " | ", "′"

    def of(self, expression: Expression, names: Mapping[str, str], inside: bool = False) -> str:
        """The text, names of variables to what is written for them; `inside` a product."""
        if isinstance(expression, Probability):
            given = self.bar + self.listed(expression.given, names) if expression.given else ""
            return f"P({self.listed(expression.targets, names)}{given})"
        if isinstance(expression, Product):
            factors = expression.factors
            # effects before causes; a sum reaches to the end of the product, so it stands last or in brackets
            ordered: list[Expression] = [f for f in reversed(factors) if not isinstance(f, Sum)]
            ordered += [f for f in reversed(factors) if isinstance(f, Sum)]
            texts = [self.of(f, names, inside=k < len(ordered) - 1) for k, f in enumerate(ordered)]
            return self.times.join(texts) if texts else "1"
        if isinstance(expression, Sum):
            here = dict(names)
            for name in expression.over:
                written = name
                while written in names.values():
                    written += self.prime
                here[name] = written
            text = self.summed(self.listed(expression.over, here), self.of(expression.body, here))
            return self.bracketed(text) if inside else text
        return self.ratio(expression, names)

    def ratio(self, expression: Quotient, names: Mapping[str, str]) -> str:
        """A quotient."""
        top, bottom = (self.of(part, names) for part in (expression.top, expression.bottom))
        wrap = [
            text if isinstance(part, Probability) else f"[{text}]"
            for part, text in ((expression.top, top), (expression.bottom, bottom))
        ]
        return " / ".join(wrap)

    def bracketed(self, text: str) -> str:
        """A part in brackets."""
        return f"[{text}]"

    def summed(self, over: str, body: str) -> str:
        """A sum."""
        return f"Σ_{over} {body}" if "," not in over and " " not in over else f"Σ_{{{over}}} {body}"

    def listed(self, listed: Iterable[str], names: Mapping[str, str]) -> str:
        """Names, as they are written here."""
        return ", ".join(self.written(names.get(name, name)) for name in listed)

    def written(self, name: str) -> str:
        """One name."""
        return name


class _Latex(_Text):
    """Writes expressions as LaTeX."""

    times, bar = r" \, ", r" \mid "

    def ratio(self, expression: Quotient, names: Mapping[str, str]) -> str:
        """A fraction."""
        return rf"\frac{{{self.of(expression.top, names)}}}{{{self.of(expression.bottom, names)}}}"

    def bracketed(self, text: str) -> str:
        """A part in brackets that grow with it."""
        return rf"\left[{text}\right]"

    def summed(self, over: str, body: str) -> str:
        """A sum."""
        return rf"\sum_{{{over}}} {body}"

    def written(self, name: str) -> str:
        """A name: a single letter in italics, a word upright, and LaTeX's special characters escaped."""
        base = name.rstrip(self.prime)
        escaped = "".join(_ESCAPES.get(letter, letter) for letter in base)
        primes = "'" * (len(name) - len(base))
        return (escaped if len(base) == 1 else rf"\mathrm{{{escaped}}}") + primes


_ESCAPES = {
    "\\": r"\backslash ",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "^": r"\hat{}",
    "~": r"\sim ",
    " ": r"\ ",
}
"""What stands in LaTeX's mathematics for a character that means something else there."""
