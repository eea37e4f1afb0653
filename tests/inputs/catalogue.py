"""The whole list."""

from tests.inputs import bodies, good, hpas, patches, queries, reviews, vpas
from tests.inputs.input import Input

BAD: tuple[Input, ...] = (*hpas.BAD, *vpas.BAD, *bodies.BAD, *patches.BAD, *queries.BAD, *reviews.BAD)
GOOD: tuple[Input, ...] = good.GOOD
ALL: tuple[Input, ...] = (*BAD, *GOOD)
