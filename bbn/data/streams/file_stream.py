"""Files and tables on this machine as a stream: threads read parts of the data, and what they find is added up.

A pass reads batches, a few at a time, each thread its own; codes the columns that are asked for; counts, and adds up.
Memory is that of the batches under way and of the counts, whatever the number of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from bbn.core.errors import DataError, ParseError
from bbn.core.threads import in_order
from bbn.data.streams.facts import Facts
from bbn.data.streams.readers import Batch, Part, Reader
from bbn.data.streams.stream import Streamed
from bbn.data.streams.sums import T, merged
from bbn.data.streams.tasks import Coding


class FileStream(Streamed):
    """Batches of files and tables on this machine, read and counted by threads.

    Attributes
    ----------
    reader
        Where batches come from.
    """

    def __init__(
        self,
        source: Reader,
        rows: int,
        coding: Coding,
        facts: Facts,
        n_jobs: int | None = None,
        limit: int | float | str | None = None,
    ) -> None:
        super().__init__(rows, coding, facts, n_jobs, limit)
        self.reader = source

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The batches in their order, with those of the columns that are there."""
        self.facts.passes += 1
        there = set(self.reader.names())
        wanted = [name for name in columns if name in there]
        for part in self.reader.parts(self.rows):
            try:
                yield from part.batches(wanted, self.rows)
            except (DataError, ParseError):
                for one in part.smaller():
                    deque(one.batches(wanted, self.rows), maxlen=0)
                raise

    def _fold(self, work: Callable[[Batch], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of all batches, added up in their order; None if there are none."""
        if self.reader.parallel:
            parts = in_order(
                lambda part: fold_part(part, work, columns, self.rows),
                self.reader.parts(self.rows),
                self.n_jobs,
            )
            return merged(found for found in parts if found is not None)
        batches = chain.from_iterable(
            part.batches(columns, self.rows) for part in self.reader.parts(self.rows)
        )
        return merged(in_order(work, batches, self.n_jobs))


def fold_part(part: Part, work: Callable[[Batch], T], columns: Sequence[str], rows: int) -> T | None:
    """What `work` finds of the batches of one part; an error names the smallest part that is at fault."""
    try:
        return merged(work(batch) for batch in part.batches(columns, rows))
    except (DataError, ParseError):
        for one in part.smaller():
            fold_part(one, work, columns, rows)
        raise
