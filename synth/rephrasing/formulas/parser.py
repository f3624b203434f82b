"""The grammar of formulas: text of a model becomes a tree, or FormulaError; it is never executed.

    list     = chain (("," | row) chain)*
    chain    = sum (relation sum)*
    sum      = ["-"] product (("+" | "-" | union ...) product)*
    product  = factor (("*" | "/" | nothing) factor)*
    factor   = "-" factor | postfix ["^" factor]
    postfix  = atom ("_" group | "!" | "'" | "%")*

One pass, no backtracking; nesting deeper than MAX_DEPTH is refused.
"""

from synth.rephrasing.formulas.tokens import FormulaError, FormulaToken, tokens_of
from synth.rephrasing.formulas.trees import Tree, add, divide, multiply, negated, num, power, root

MAX_DEPTH = 60
"""Of calls: a pair of brackets takes three."""

_SUMS = frozenset(["+", "-", "pm", "mp", "cup", "cap", "setminus", "and", "or"])
_STARTS = frozenset(["number", "symbol", "function", "open", "begin"])
_BIG = frozenset(["sum", "prod", "int", "oint", "iint", "bigcup", "bigcap", "lim"])
_APPLIED = frozenset(["f", "g", "h", "F", "G", "P", "E", "phi", "psi", "varphi", "Phi"])
_END = FormulaToken("end of text", "")


def parse(text: str, *, commas: bool = False) -> Tree:
    """Raises FormulaError. `commas`: see `formula_tokens.tokens_of`."""
    tokens = tokens_of(text, commas=commas)
    while tokens and tokens[-1].kind in ("stop", "comma", "row"):
        tokens.pop()  # of the sentence around it
    if not tokens:
        raise FormulaError("empty")
    reader = _Reader(tokens)
    tree = reader.list_until(())
    reader.expect("end of text")
    return tree


class _Reader:
    def __init__(self, tokens: list[FormulaToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._bars = 0
        """Open bars of absolute values: in them a bar closes."""

    @property
    def here(self) -> FormulaToken:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _after(self, ahead: int = 1) -> FormulaToken:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def take(self) -> FormulaToken:
        token = self.here
        self._at += 1
        return token

    def expect(self, kind: str, text: str | None = None) -> FormulaToken:
        token = self.take()
        if token.kind != kind or (text is not None and token.text != text):
            raise FormulaError(f"{text or kind} expected at token {self._at}, got {token.text!r}")
        return token

    def _enter(self) -> None:
        """Left by counting down; after an error nobody reads on."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH}")

    def list_until(self, ends: tuple[str, ...]) -> Tree:
        """Everything up to a token of these kinds, or to the end."""
        items = [self.chain()]
        while self.here.kind in ("comma", "row", "cell", "stop"):
            between = {self.take().kind}
            while self.here.kind in ("comma", "row", "cell", "stop"):
                between.add(self.take().kind)
            if self.here.kind in (*ends, "end of text"):
                break
            if self.here.kind == "relation" and between & {"row", "cell"}:
                items[-1] = self._chained(items[-1])  # the next line goes on with "= ..."
            else:
                items.append(self.chain())
        return items[0] if len(items) == 1 else ("list", *items)

    def chain(self) -> Tree:
        self._enter()
        first: Tree = ("empty",) if self.here.kind == "relation" else self.sum()
        tree = self._chained(first)
        self._depth -= 1
        return tree

    def _chained(self, first: Tree) -> Tree:
        parts: list[object] = list(first[1:]) if first[0] == "chain" else [first]
        while self.here.kind in ("relation", "cell") or self._is_given():
            if self.here.kind == "cell":
                if (
                    self._at + 1 < len(self._tokens)
                    and self._tokens[self._at + 1].kind == "relation"
                ):
                    self.take()  # "&=" of an aligned line
                    continue
                break
            sign = self.take().text
            if self.here.kind == "cell":
                self.take()
            parts += ["mid" if sign == "|" else sign, self.sum()]
        return first if len(parts) == 1 else ("chain", *parts)

    def _is_given(self) -> bool:
        return self.here.kind == "bar" and not self._bars

    def sum(self) -> Tree:
        terms = [self._signed()]
        while self.here.kind == "operator" and self.here.text in _SUMS:
            sign = self.take().text
            term = self.product()
            if sign in "+-":
                terms.append(negated(term) if sign == "-" else term)
            else:
                terms = [("op", sign, add(terms), term)]
        return add(terms)

    def _signed(self) -> Tree:
        if self.here.kind == "operator" and self.here.text in ("+", "-", "pm", "mp"):
            sign = self.take().text
            term = self.product()
            return {"+": term, "-": negated(term)}.get(sign, ("op", sign, num(0), term))
        return self.product()

    def product(self, *, inside_function: bool = False) -> Tree:
        tree = self.factor()
        while True:
            token = self.here
            if token.kind == "operator" and token.text in ("*", "/", "mod", "circ"):
                if inside_function:
                    return tree
                sign = self.take().text
                other = self.factor()
                if sign in "*/":
                    tree = divide(tree, other) if sign == "/" else multiply([tree, other])
                else:
                    tree = ("op", sign, tree, other)
            elif token.kind in _STARTS and not (inside_function and token.kind == "function"):
                tree = self._beside(tree, token)
            elif token.kind == "bar" and not self._bars and self._closes_later():
                tree = multiply([tree, self.factor()])
            else:
                return tree

    def _beside(self, tree: Tree, token: FormulaToken) -> Tree:
        if token.kind == "number" and tree[0] == "num":
            raise FormulaError(f"two numbers side by side at token {self._at}")
        return multiply([tree, self.factor()])

    def _closes_later(self) -> bool:
        """A bar after a factor opens an absolute value only as in "2|x|"."""
        level = bars = 0
        for ahead in range(1, 60):
            token = self._after(ahead)
            level += (token.kind == "open") - (token.kind == "close")
            if level < 0 or token is _END:
                break
            bars += token.kind == "bar" and level == 0
        return bars == 1

    def factor(self) -> Tree:
        self._enter()
        if self.here.kind == "operator" and self.here.text in ("-", "+"):
            sign = self.take().text
            inner = self.factor()
            tree = negated(inner) if sign == "-" else inner
        else:
            tree = self.powered(self.atom())
        self._depth -= 1
        return tree

    def powered(self, tree: Tree) -> Tree:
        """What follows an atom closely: indices, primes, factorials, powers."""
        while True:
            token = self.here
            if token.kind == "power":
                self.take()
                tree = power(tree, num(token.value or 1))
            elif token.kind == "operator" and token.text in ("_", "^", "!", "'", "%", "deg"):
                self.take()
                if token.text == "_":
                    tree = ("sub", tree, self.group())
                elif token.text == "^":
                    tree = power(tree, self.group())
                elif token.text == "deg":
                    tree = power(tree, ("sym", "circ"))
                else:
                    tree = ("fn", token.text, tree)
            else:
                return tree

    def group(self) -> Tree:
        """What an index, a power or a command takes: braces, or one atom, with its sign.

        The 10 of x^10 is ten: TeX would take the 1 alone, which nobody means.
        """
        token = self.here
        if token.kind == "operator" and token.text == "circ":
            self.take()
            return ("sym", "circ")
        if token.kind == "operator" and token.text == "-":
            self.take()
            self._enter()
            inner = self.group()
            self._depth -= 1
            return negated(inner)
        if token.kind == "operator" and token.text in ("+", "*", "'"):
            return ("sym", self.take().text)
        return self.atom()

    def atom(self) -> Tree:
        self._enter()
        tree = self._atom(self.take())
        self._depth -= 1
        return tree

    def _atom(self, token: FormulaToken) -> Tree:
        if token.kind == "number":
            return num(token.value or 0)
        if token.kind == "symbol":
            applied = token.text in _APPLIED and self.here == FormulaToken("open", "(")
            if applied:
                return ("fn", token.text, self._bracketed(self.take()))
            return ("sym", token.text)
        if token.kind == "open":
            return self._bracketed(token)
        if token.kind == "bar":
            self._bars += 1
            inner = self.list_until(("bar",))
            self.expect("bar")
            self._bars -= 1
            return ("fn", "abs", inner)
        if token.kind == "begin":
            return self._rows(token.text)
        if token.kind == "function":
            return self._function(token.text)
        raise FormulaError(f"{token.text or token.kind!r} at token {self._at}")

    def _bracketed(self, opened: FormulaToken) -> Tree:
        if self.here.kind == "close":
            self.take()
            return ("tuple",)
        bars, self._bars = self._bars, 0
        inner = self.list_until(("close",))
        self._bars = bars
        closed = self.expect("close")
        items = inner[1:] if inner[0] == "list" else (inner,)
        if opened.text == "\\{":
            return ("set", *sorted(items, key=repr))
        if opened.text in ("floor", "ceil", "angle"):
            return ("fn", opened.text, *items)
        if len(items) > 1:
            kind = "tuple" if opened.text == closed.text == "(" else opened.text + closed.text
            return (kind, *items)
        return inner

    def _rows(self, name: str) -> Tree:
        """A matrix or a list of cases; lines of an `align` are formulas of their own."""
        rows: list[list[Tree]] = [[]]
        while self.here.kind != "end":
            if self.here.kind in ("cell", "comma"):
                self.take()
            elif self.here.kind == "row":
                self.take()
                rows.append([])
            elif self.here.kind == "end of text":
                raise FormulaError(f"{name} is not closed")
            else:
                rows[-1].append(self.chain())
        self.expect("end", name)
        cells = tuple(("row", *row) for row in rows if row)
        return cells[0] if len(cells) == 1 and name != "cases" else (name, *cells)

    def _function(self, name: str) -> Tree:
        if name.endswith("frac"):
            return self._fraction()
        if name.endswith("binom"):
            return ("fn", "binom", self.group(), self.group())
        if name == "sqrt":
            degree = num(2)
            if self.here == FormulaToken("open", "["):
                self.take()
                degree = self.chain()
                self.expect("close", "[")
            return root(self.group(), degree)
        if name == "boxed":
            return self.group()
        if name in ("phantom", "label"):
            self.group()
            return self.atom()
        decorated: list[Tree] = []
        exponent = None
        while self.here.kind == "operator" and self.here.text in ("_", "^"):
            sign = self.take().text
            if sign == "^" and name not in _BIG:
                exponent = self.group()
            else:
                decorated.append(("at", sign, self.group()))
        tree: Tree = ("fn", name, *sorted(decorated, key=repr), self._argument(name))
        return tree if exponent is None else power(tree, exponent)

    def _fraction(self) -> Tree:
        token = self.here
        if token.kind == "number" and token.text.isdigit() and len(token.text) == 2:
            self.take()  # \\frac12
            return divide(num(int(token.text[0])), num(int(token.text[1])))
        return divide(self.group(), self.group())

    def _argument(self, name: str) -> Tree:
        if self.here.kind == "open" and name not in _BIG:
            return self._bracketed(self.take())
        if name in _BIG:
            return self.product()
        return self.product(inside_function=True)
