"""Taking up a stored memory again after a restart or a change of leader.

Memory is stored together with the status, and the status is written only when it changes. So a stored memory may be
old while nothing happened: the workload was at its recommendation all the time, up to the last sign of life of
whoever decided then. Forgetting that would scale down too early; counting from now would scale down too late.
"""

import msgspec

from trimtab.decide.horizontal.memory import LONGEST_WINDOW, Memory, remember


def resumed(memory: Memory, current: int, last_alive: float) -> Memory:
    """Return the memory as it was when the last decision was made, at about `last_alive`.

    If the latest stored recommendation was at least the current replicas, that went on until `last_alive`. If it was
    lower, a scale-down was being held back, and its window runs on from the stored moments.
    """
    known = memory.recommendations
    if not known:
        return memory
    latest = max(known, key=lambda one: one.at)
    if latest.replicas < current or last_alive <= latest.at:
        return memory
    return msgspec.structs.replace(
        memory, recommendations=remember(known, current, last_alive, LONGEST_WINDOW)
    )
