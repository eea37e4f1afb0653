"""What enters the cluster state: usage samples, OOM kills, history and checkpoints.

Belongs here: conversion and validation of inputs that the operator has read. Reading them from the API server or from
Prometheus does not.

Reading order: `usage` (samples of a scrape), `oom` (kills in pods and events), `checkpoints` with `memory_windows` (save
and load history), `history` (replay samples of a time before this process) with `history_pods` (which VPA a pod belonged
to then).
"""
