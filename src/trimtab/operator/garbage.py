"""When a program that runs for months looks for garbage.

Nearly everything that a round makes is freed the moment nobody refers to it, and API objects are not known to the
collector at all (`model.wire`). What is left to it are tasks and exceptions that refer to themselves. Python looks for
those after every 700 new objects, and walks everything it knows now and then: a tenth of the time of a round of 1,000 HPAs.
"""

import gc

THRESHOLDS = (50_000, 20, 20)
"""New objects between two looks at the young ones (about a round of 1,000 HPAs), and how many of those make a longer look."""


def look_less_often() -> None:
    """Set the pace of the collector; call it first, because loading a program makes many objects and no garbage."""
    gc.set_threshold(*THRESHOLDS)


def spare_what_is_known() -> None:
    """Leave out of every later look what exists now: the program itself and its first lists, which are here to stay."""
    gc.freeze()
