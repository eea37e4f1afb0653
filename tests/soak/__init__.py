"""The soak: weeks of churn on a cluster, and figures that must not grow.

gauges      what is counted: memory, objects, lengths of containers, tasks, sockets, watches, labels
report      the table by day, and the verdict
churn       what happens to the cluster in one round
objects     the manifests that come and go
virtual     30 days on the lab in virtual time, with two replicas of Trimtab in this process
real        an hour on the real API server, with two processes of Trimtab
"""
