"""Built-in kinds of Kubernetes, with the fields that Trimtab reads.

`meta` holds the parts that all objects share, `metadata_validation` the rules of metadata. `pod` is the largest kind;
`workloads` create pods; `objects` holds the small kinds. `scheduling` matches
pods with nodes. HPAs and VPAs have packages of their own.
"""
