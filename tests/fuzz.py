"""Fuzzing of the readers: broken files by the thousand, each of which must give a network or a ParseError.

    python -m tests.fuzz [SECONDS] [SEED]        (or `make fuzz`; 60 seconds unless told otherwise)
    python -m tests.fuzz keep [SECONDS] [SEED]   (with atheris: put what reaches new code into tests/fuzz/corpus)

Files are made from good ones by seeded mutation, so a failure is reproduced by its seed. Where atheris is installed
(the extra `fuzz`), half of the time goes to its mutations, which look for code that no file has reached. They start
from `tests/fuzz/corpus`, the smallest files found so far that reach each part of a reader. `NASTY` are the inputs made
to hurt: bombs, deep nesting, endless numbers, tables that a few words ask to be huge.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bbn
from bbn.io import FORMATS, dumps, loads

WORDS = [
    *'{}()[];:,|="<>&%#\\/ \n\t\0',
    *(
        "//",
        "/*",
        "*/",
        '""',
        "\\u0000",
        "é",
        "名",
        "\ufeff",
        "\r\n",
        "- ",
        "? ",
        "&a",
        "*a",
        "!!python/object",
    ),
    *(
        "1e999",
        "-1",
        "nan",
        "inf",
        "1e-400",
        "0" * 50,
        "9" * 400,
        "1_0",
        "0x10",
        ".5",
        "5.",
        "1e",
        "+",
        "99999999999",
    ),
    *("variable", "probability", "network", "type discrete [ 2 ] { a, b };", "default", "table", "property"),
    *("node", "potential", "data", "states", "net", "BAYES", "MARKOV", "nodes:", "parents:", "null", "true"),
    *(
        "<cpt id='a'>",
        "</cpt>",
        "<!DOCTYPE x [",
        "<!ENTITY a 'b'>",
        "&a;",
        "<![CDATA[",
        "<noisymax>",
        "<strengths>",
    ),
    *("asia", "tub", "yes", "no", "either", "0.5", "1", "0", "{}", "[]"),
    *(
        "20 %",
        "%",
        "1/3",
        "1/0",
        "default: [1, 0]",
        "type: noisy-or",
        "links:",
        "leak:",
        "holds:",
        "description:",
    ),
]


def seeds(format: str) -> list[bytes]:
    """Good files of the format to start from."""
    from tests.io.test_formats import BNLEARN, JAVABAYES, NET, ODD, XDSL, XMLBIF, family

    by_hand = {"bif": [JAVABAYES, BNLEARN], "net": [NET], "xdsl": [XDSL], "xmlbif": [XMLBIF]}.get(format, [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [dumps(net, format) for net in (bbn.example("asia"), bbn.example("student"), family(ODD[:4]))]
    if format == "uai":
        made.append("MARKOV 3 2 3 2 2 2 1 0 1 0\n6 1 2 3 4 5 6\n2 7 8")
    if format == "xdsl":
        made.append(
            '<smile id="n"><nodes><cpt id="a"><state id="x" /><state id="y" /><probabilities>1 0</probabilities></cpt>'
            '<noisymax id="b"><state id="u" /><state id="v" /><parents>a</parents><strengths>1 0</strengths>'
            "<parameters>0.5 0.5 0 1 0.1 0.9</parameters></noisymax></nodes></smile>"
        )
    if format in ("yaml", "json"):
        elicited = (Path(__file__).parent / "io" / "elicited.yaml").read_text()
        made.append(elicited if format == "yaml" else dumps(loads(elicited, "yaml"), "json"))
        hybrid = (Path(__file__).parent / "corpus" / f"hybrid-1.{format}").read_text()
        binned = bbn.BayesianNetwork([bbn.CPT(bbn.Binned("M", edges=[1, 2.5]), table=[0.2, 0.3, 0.5])])
        made += [hybrid, dumps(binned, format)]
    if format in ("yaml", "json"):
        made += [dumps(bbn.example(name), format) for name in ("umbrella", "umbrella_weather", "treatment")]
    if format == "xdsl":
        made.append(dumps(bbn.example("umbrella_weather"), format))
    return [text.encode() for text in (*made, *by_hand)]


def mutated(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The data with a few random changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        size = len(data)
        start = rng.randrange(size + 1)
        stop = min(size, start + rng.choice([0, 1, 1, 2, 5, 20, 100]))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:start] + data[stop:]
        elif kind == 1:
            data = data[:stop] + data[start:stop] * rng.choice([1, 1, 2, 50]) + data[stop:]
        elif kind == 2:
            data = data[:start] + rng.choice(WORDS).encode() + data[stop:]
        elif kind == 3:
            data = data[:start] + rng.choice(WORDS).encode() + data[start:]
        elif kind == 4:
            data = data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]
        elif kind == 5:
            data = data[:start] if rng.random() < 0.3 else data
        elif kind == 6:
            other = rng.choice(others)
            at = rng.randrange(len(other) + 1)
            data = data[:start] + other[at : at + rng.choice([5, 50, 500])] + data[stop:]
        else:
            words = data.split(b" ")
            i, j = rng.randrange(len(words)), rng.randrange(len(words))
            words[i], words[j] = words[j], words[i]
            data = b" ".join(words)
    return data


def outcome(data: bytes, format: str | None, seconds: int = 20) -> str:
    """What reading gives: "network" or "error"; anything else is raised."""
    with warnings.catch_warnings(), time_limit(seconds):
        warnings.simplefilter("ignore")
        try:
            model = loads(data, format)
        except bbn.ParseError as error:
            str(error)
            return "error"
    if not isinstance(
        model, bbn.BayesianNetwork | bbn.FactorGraph | bbn.DynamicNetwork | bbn.DecisionNetwork
    ):
        raise AssertionError(f"reading gave {model!r}")
    return "network"


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the body if it takes longer (in the main thread, where there are alarms)."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError(f"reading took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(format: str, seed: int, enough: Callable[[int], bool]) -> Counter[str]:
    """Mutate and read until it is enough; the outcomes counted."""
    rng = random.Random(f"{format} {seed}")
    good = starts(format)
    counts: Counter[str] = Counter()
    while not enough(counts.total()):
        data = mutated(rng, rng.choice(good), good)
        try:
            counts[outcome(data, format)] += 1
        except BaseException:
            print(f"format {format}, seed {seed}, input {counts.total()}: {data!r}", file=sys.stderr)
            raise
    return counts


def bomb(start: bytes, megabytes: int = 100) -> bytes:
    """Gzip data of 100 kB that unpacks to 100 MB of spaces, made without holding them."""
    packer = zlib.compressobj(9, wbits=31)
    chunk = b" " * 2**20
    return b"".join(
        [packer.compress(start), *(packer.compress(chunk) for _ in range(megabytes)), packer.flush()]
    )


VARIABLES = "".join(f"variable v{i} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for i in range(60))
NODES = "".join(f'node v{i} {{ states = ("a" "b"); }}\n' for i in range(60))
CPTS = "".join(
    f'<cpt id="v{i}"><state id="a" /><state id="b" /><probabilities>1 0</probabilities></cpt>'
    for i in range(60)
)
PARENTS = " ".join(f"v{i}" for i in range(1, 60))
LAUGHS = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
MANY_PARENTS = json.dumps(
    {
        "nodes": {f"v{i}": {"states": ["a", "b"], "table": [1, 0]} for i in range(1100)}
        | {"c": {"states": ["x"], "parents": [f"v{i}" for i in range(1100)], "table": {"a": [1]}}}
    }
)


def defaulted(n: int) -> str:
    """A YAML file whose last node has a default row for 2^n settings."""
    roots = "".join(f"  v{i}: {{states: [a, b], table: [1, 0]}}\n" for i in range(n))
    parents = ", ".join(f"v{i}" for i in range(n))
    return f"nodes:\n{roots}  c: {{states: [x, y], parents: [{parents}], table: {{default: [1, 0]}}}}\n"


GIVENS = "".join(f"<GIVEN>v{i}</GIVEN>" for i in range(1, 60))
ROOTS = "variable c { type discrete [ 2 ] { a, b }; }" + "".join(
    f" probability ( v{i} ) {{ table 1 0; }}" for i in range(60)
)
ROOT_NAMES = ", ".join(f"v{i}" for i in range(18))
NASTY: dict[str, tuple[str, Callable[[], str | bytes]]] = {
    "gzip bomb": ("bif", lambda: bomb(b"")),
    "gzip bomb inside valid text": ("yaml", lambda: bomb(b"nodes:\n")),
    "billion laughs": ("xmlbif", lambda: f"<!DOCTYPE BIF [{LAUGHS}]><BIF><NETWORK><NAME>&a9;</NAME></NETWORK></BIF>"),
    "billion laughs in GeNIe's": ("xdsl", lambda: f"<!DOCTYPE smile [{LAUGHS}]><smile id='&a9;'/>"),
    "quadratic entity": ("xmlbif", lambda: f"<!DOCTYPE B [<!ENTITY a '{'x' * 10**6}'>]><BIF>{'&a;' * 10**5}</BIF>"),
    "external entity": ("xmlbif", lambda: '<!DOCTYPE B [<!ENTITY a SYSTEM "file:///etc/passwd">]><BIF>&a;</BIF>'),
    "external document type": ("xdsl", lambda: '<!DOCTYPE smile SYSTEM "http://localhost:1/x.dtd"><smile>&a;</smile>'),
    "deep XML": ("xmlbif", lambda: "<BIF>" * 10**5),
    "deep GeNIe XML": ("xdsl", lambda: "<smile><nodes>" * 10**5),
    "deep BIF": ("bif", lambda: "network x " + "{" * 10**5),
    "deep BIF closed": ("bif", lambda: "network x " + "{" * 10**5 + "}" * 10**5),
    "deep NET": ("net", lambda: 'node a { states = ("x"); } potential (a) { data = ' + "(" * 10**5 + "x;}"),
    "deep NET braces": ("net", lambda: "net " + "{" * 10**5),
    "deep YAML": ("yaml", lambda: "nodes: " + "[" * 10**5),
    "deep JSON": ("json", lambda: '{"nodes": ' + "[" * 10**5),
    "deep note": ("bif", lambda: 'variable a { type discrete [ 1 ] { x }; property bbn = "' + "[" * 10**5 + '"; }'),
    "a long number in BIF": ("bif", lambda: f"{VARIABLES} probability (v0) {{ table 0.{'1' * 10**7}, 0; }}"),
    "a long number in NET": ("net", lambda: f"{NODES} potential (v0) {{ data = (0.{'1' * 10**7} 0); }}"),
    "a long number in XML": ("xdsl", lambda: f"<smile><nodes>{CPTS.replace('1 0', '1' * 10**5)}</nodes></smile>"),
    "a long number in UAI": ("uai", lambda: f"BAYES {'1' * 10**7}"),
    "a long number in YAML": ("yaml", lambda: f"nodes: {{a: {{states: [x], table: [{'1' * 10**7}]}}}}"),
    "a long number in JSON": ("json", lambda: f'{{"nodes": {{"a": {{"states": ["x"], "table": [{"1" * 10**7}]}}}}}}'),
    "a number past the limit": ("bif", lambda: f"{VARIABLES} probability (v0) {{ table {'1' * 3 * 10**7}; }}"),
    "quotes without end": ("bif", lambda: '"' + '\\"' * 10**6),
    "quotes in pairs": ("bif", lambda: "network x {" + '""' * 10**6),
    "comment openings": ("bif", lambda: "/*" * 10**6),
    "comment that never ends": ("bif", lambda: "network x { } /*" + "*" * 10**6),
    "spaces": ("bif", lambda: "variable" + " " * 10**6 + "x"),
    "semicolons": ("bif", lambda: ";" * 10**6 + "x"),
    "commas": ("bif", lambda: "variable a { type discrete [ 2 ] { " + "," * 10**6 + " }; }"),
    "a default for 2^59 rows": ("bif", lambda: f"{VARIABLES} probability ( v0 | {PARENTS} ) {{ default 1 0; }}"),
    "rows missing of 2^59": ("bif", lambda: f"{VARIABLES} probability ( v0 | {PARENTS} ) {{ }}"),
    "states without number": ("bif", lambda: "variable a { type discrete [ 999999999 ] { x }; }"),
    "a potential without data": ("net", lambda: f"{NODES} potential (v0 | {PARENTS}) {{ }}"),
    "deterministic of 59 parents": ("xdsl", lambda: (
        f'<smile><nodes>{CPTS}<deterministic id="y"><state id="a" /><parents>{PARENTS}</parents>'
        "<resultingstates>a</resultingstates></deterministic></nodes></smile>"
    )),
    "a variable of 10^9 states": ("uai", lambda: "MARKOV 1 1000000000 0"),
    "a scope of 10^9 variables": ("uai", lambda: "MARKOV 1 2 1 1000000000"),
    "a thousand variables in a scope": ("uai", lambda: f"BAYES 1000 {'999 ' * 1000} 1 1000 {'1 ' * 1000}"),
    "2^100000 rows by default": ("bif", lambda: (
        f"{VARIABLES} probability ( v0 | {'v1, ' * 10**5} v2 ) {{ default 1 0; }}")),
    "2^100000 rows missing": ("bif", lambda: f"{VARIABLES} probability ( v0 | {'v1, ' * 10**5} v2 ) {{ }}"),
    "2^100000 entries in NET": ("net", lambda: f"{NODES} potential (v0 | {'v1 ' * 10**5}) {{ data = (1); }}"),
    "2^100000 rows in NET": ("net", lambda: f"{NODES} potential (v0 | {'v1 ' * 10**5}) {{ }}"),
    "a default for 2^59 rows in YAML": ("yaml", lambda: defaulted(59)),
    "a default for 2^27 rows in YAML": ("yaml", lambda: defaulted(27)),
    "defaults for 2^23 rows in YAML": ("yaml", lambda: defaulted(23) + "".join(
        f"  d{i}: {{states: [x, y], parents: [{', '.join(f'v{j}' for j in range(23))}], table: {{default: [1, 0]}}}}\n"
        for i in range(50))),
    "a fraction of many digits": ("yaml", lambda: f"nodes: {{a: {{states: [x], table: [1/{'1' * 10**7}]}}}}"),
    "a percentage of many digits": ("yaml", lambda: f"nodes: {{a: {{states: [x], table: [0.{'1' * 10**7} %]}}}}"),
    "a noisy-or without states": ("yaml", lambda: "nodes: {a: {type: noisy-or, states: [], links: {}, leak: 1}}"),
    "a noisy-or of itself": ("yaml", lambda: (
        "nodes: {a: {type: noisy-or, states: [no, yes], parents: [a], links: {a: 1}}}")),
    "2^1100 entries in YAML": ("yaml", lambda: MANY_PARENTS),
    "2^1100 entries in JSON": ("json", lambda: MANY_PARENTS),
    "2^59 entries in XMLBIF": ("xmlbif", lambda: (
        "<BIF><NETWORK>" + "".join(f"<VARIABLE><NAME>v{i}</NAME><OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME></VARIABLE>"
        f"<DEFINITION><FOR>v{i}</FOR>{GIVENS if not i else ''}<TABLE>1 0</TABLE></DEFINITION>" for i in range(60))
        + "</NETWORK></BIF>")),
    "noisy-MAX without states": ("xdsl", lambda: (
        "<smile><nodes><noisymax id='a'><parameters /></noisymax></nodes></smile>")),
    "noisy-MAX of a parent without states": ("xdsl", lambda: (
        "<smile><nodes><cpt id='b'><probabilities /></cpt><noisymax id='a'><state id='x' /><parents>b</parents>"
        "<parameters>1</parameters></noisymax></nodes></smile>")),
    "deterministic without states": ("xdsl", lambda: (
        "<smile><nodes><deterministic id='a'><resultingstates /></deterministic></nodes></smile>")),
    "a hexadecimal state of 8,000 digits": ("yaml", lambda: (
        f"nodes: {{a: {{states: [0x{'f' * 8000}, 1], table: [1, 0]}}, "
        "b: {states: [x], parents: [a], table: {0: [1]}}}")),
    "an octal state of 10^6 digits": ("yaml", lambda: f"nodes: {{a: {{states: [0o{'7' * 10**6}], table: [1]}}}}"),
    "an integer of 310 digits": ("json", lambda: f'{{"nodes": {{"a": {{"states": ["x"], "table": [{"1" * 310}]}}}}}}'),
    "half a surrogate pair": ("json", lambda: '{"nodes": {"\\ud800": {"states": ["x"], "table": [1]}}}'),
    "the same node again and again": ("yaml", lambda: "nodes:\n" + "  a: {states: [x], table: [1]}\n" * 5000),
    "the same row again and again": ("yaml", lambda: (
        "nodes: {a: {states: [x], table: [1]}, "
        f"b: {{states: [y], parents: [a], table: {{{'x: [1], ' * 20_000}}}}}}}")),
    "the same state again and again": ("net", lambda: f"node a {{ states = ({'y ' * 10**5}); }} potential (a) {{ }}"),
    "the same variable again and again": ("bif", lambda: VARIABLES * 300),
    "the same parent again and again": ("xmlbif", lambda: (
        f"<BIF><NETWORK><VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME></VARIABLE><DEFINITION><FOR>a</FOR>"
        f"{'<GIVEN>a</GIVEN>' * 20_000}<TABLE>1</TABLE></DEFINITION></NETWORK></BIF>")),
    "a later version": ("yaml", lambda: "version: 2\nnodes: {a: {states: [x], table: [1]}}"),
    "2^18 wrong rows": ("bif", lambda: (
        f"{VARIABLES} {ROOTS} probability ( c | {ROOT_NAMES} ) {{ default 0.5 0.2; }}")),
    "members of gzip data": ("bif", lambda: gzip.compress(b"", mtime=0) * 50_000),
    "gzip in gzip": ("bif", lambda: gzip.compress(bomb(b""))),
    "no variables": ("uai", lambda: "BAYES 0 0"),
    "NUL": ("bif", lambda: b"network x {\0}"),
    "not text": ("net", lambda: bytes(range(256)) * 100),
    "a lone surrogate in UTF-16": ("bif", lambda: b"\xff\xfe\x00\xd8"),
}  # fmt: skip


def nasty() -> None:
    """Read every nasty input within time and memory, and find it refused where 200 MB are all there is."""
    os.environ["BBN_MEMORY_LIMIT"] = "200MB"
    for title, (format, make) in NASTY.items():
        data = make()
        raw = data.encode() if isinstance(data, str) else data
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        if outcome(raw, format, seconds=120) != "error":
            raise AssertionError(f"{title}: was read")
        seconds = time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024  # MB on Linux
        print(f"{title}: {seconds:.3f} s, {grown:.0f} MB")
        # a sanitizer takes time and memory of its own
        if (seconds > 10 or grown > 300) and "BBN_SANITIZE" not in os.environ:
            raise AssertionError(f"{title}: took {seconds:.1f} s and {grown:.0f} MB")
    del os.environ["BBN_MEMORY_LIMIT"]


INSTRUMENTED = """
import atheris, importlib, pkgutil
with atheris.instrument_imports(include=["bbn.io"]):
    import bbn.io
    for module in pkgutil.walk_packages(bbn.io.__path__, "bbn.io."):
        importlib.import_module(module.name)
"""
"""The readers, with a note taken of each branch."""


CORPUS = Path(__file__).parent / "fuzz" / "corpus"


SMALL = "-max_len=1000"
"""The most bytes of a file that is kept."""


def corpus(format: str) -> list[Path]:
    """The files kept for a format."""
    return sorted((CORPUS / format).glob("*"))


def starts(format: str) -> list[bytes]:
    """What mutations of the format start from: good files, and those kept."""
    return [*seeds(format), *(path.read_bytes() for path in corpus(format))]


def reached(data: bytes, format: str) -> set[tuple[str, int, int]]:
    """The steps from line to line of the readers that reading makes."""
    steps: set[tuple[str, int, int]] = set()
    folder = str(Path(bbn.io.__file__).parent)

    def entered(frame: Any, _: str, __: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(folder):
            return None
        last = frame.f_lineno

        def line(frame: Any, *_: Any) -> Any:
            nonlocal last
            steps.add((name, last, frame.f_lineno))
            last = frame.f_lineno
            return line

        return line

    sys.settrace(entered)
    try:
        outcome(data, format)
    finally:
        sys.settrace(None)
    return steps


def guided(format: str, *options: str, folders: tuple[str, ...] = ()) -> None:
    """Let atheris mutate files of the format, guided by the code that they reach; this ends the process.

    The readers must have been imported through `INSTRUMENTED`. A file that fails is written to the folder of the
    process, and named.

    Parameters
    ----------
    format
        Its name.
    options
        Of libFuzzer, as in "-max_total_time=60".
    folders
        New files go to the first of these, and mutations start from all; by default new files are forgotten.
    """
    import atheris

    with tempfile.TemporaryDirectory() as made:
        for k, data in enumerate(starts(format)):
            Path(made, f"seed{k}").write_bytes(data)
        limits = ["-max_len=20000", "-rss_limit_mb=0", *options]
        atheris.Setup([sys.argv[0], *limits, *folders, made], lambda data: outcome(data, format) and None)
        atheris.Fuzz()


def called(format: str, options: list[str], folders: tuple[str, ...] = ()) -> str:
    """What `guided` says in a process of its own; exits with it if a file failed."""
    call = f"{INSTRUMENTED}\nfrom tests.fuzz import guided; guided({format!r}, *{options!r}, folders={folders!r})"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{format}: {done.stdout}{done.stderr}")
    return done.stderr.strip().splitlines()[-1]


def keep(seconds: float = 60.0, seed: int = 0) -> None:
    """Search for an equal time in each format, and add the smallest files that reach what the corpus does not."""
    for format in (format.name for format in FORMATS):
        (CORPUS / format).mkdir(parents=True, exist_ok=True)
        before = len(corpus(format))
        with tempfile.TemporaryDirectory() as found:
            share = f"-max_total_time={round(seconds / len(FORMATS))}"
            called(format, [share, f"-seed={seed + 1}", SMALL], (found,))
            known = set().union(*(reached(data, format) for data in starts(format)))
            for data in sorted((path.read_bytes() for path in Path(found).iterdir()), key=len):
                steps = reached(data, format)
                if not steps <= known:
                    known |= steps
                    name = hashlib.sha256(data).hexdigest()[:12]
                    (CORPUS / format / name).write_bytes(data)
        print(f"{format}: {len(corpus(format)) - before} files more, {len(corpus(format))} in all")


def main(seconds: float = 60.0, seed: int = 0) -> None:
    """The nasty inputs, then an equal share of the time for each format."""
    nasty()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: mutations are not guided by the code that they reach")
    else:
        seconds /= 2
        for format in FORMATS:
            share = max(1, round(seconds / len(FORMATS)))
            print(
                f"{format.name}, guided:",
                called(format.name, [f"-max_total_time={share}", f"-seed={seed + 1}"]),
            )
    for format in FORMATS:
        end = time.monotonic() + seconds / len(FORMATS)
        counts = fuzz(format.name, seed, lambda _, end=end: time.monotonic() > end)
        print(
            f"{format.name}: {counts.total()} files, {counts['network']} of them networks, the others refused"
        )


if __name__ == "__main__":
    run, given = (keep, sys.argv[2:]) if sys.argv[1:2] == ["keep"] else (main, sys.argv[1:])
    run(*map(float, given[:1]), *map(int, given[1:2]))
