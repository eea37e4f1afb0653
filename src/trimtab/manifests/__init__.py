"""Reads manifests with the line of each field, and writes YAML.

Reading order: `documents` (files and Lists), `yaml_nodes` (YAML events to data with lines), `findings` (errors and
warnings with their lines), `writing`.
What does not belong here: the rules of a kind, which are in `model`.
"""
