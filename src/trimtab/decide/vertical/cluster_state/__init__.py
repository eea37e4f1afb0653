"""The recommender's model of a cluster: pods, VPAs, and the usage aggregates that connect them.

Belongs here: state that samples change and recommendations read. Sources of samples (`input`) and estimates
(`recommend`) import this folder, never the reverse.

Reading order: `aggregates` (histograms per container name, labels and partition), `containers` (a running container's
sample state), `vpa` (a VPA and its aggregates), `cluster` (the whole model), `profiles` (aggregates merged per container
of a VPA), `garbage` (expiry). `amounts` converts floats to whole amounts.
"""
