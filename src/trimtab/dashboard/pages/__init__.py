"""The pages as values: what the JSON API sends and the scripts draw.

Reading order: `views` (all values), `decision` (an HPA's decision), `why_not` (why not more or fewer replicas), `pods`,
`what_if` (the decision on edited input), `patches` (what can be copied), `histograms` (a VPA's usage).

What does not belong here: reading from a running operator (`sources`) and HTTP (`web`).
"""
