"""Random lives of autoscaled workloads, each played with our rules and with upstream's, and judged by what came of them.

Reading order: `world` (what a world is, and what a life leaves), a family (`hpas`, `sizes`: which worlds there are, and who plays
them), `verdicts` (how much worse a life may be), `shrink` (the smallest world that still fails), `stories` (a world told in a few
lines), `known` (failures that wait for their remedy, and mended ones), `__main__` (the command). `real` plays beside the real
controllers.

What belongs here: workloads, loads, faults and outcomes. What does not: anything that knows how a decision is made. The worlds must
hold while the inside of Trimtab is built again.
"""
