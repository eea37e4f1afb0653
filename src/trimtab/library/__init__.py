"""The library behind `import trimtab`: what scripts and notebooks call.

Reading order: `yaml_nodes`, `documents` and `findings` (manifests with the line of each field), `autoscalers` (manifests as values),
`trace` and `prometheus` (recorded load), `candidates` and `simulation` (backtests), `simulator` (pods, nodes and lives in virtual time),
`decisions` (explain and replay), `frames` (dataframes in and out), `progress` (the line that shows how far a long call is).

What belongs here: arguments as people write them, results that a notebook shows, and errors that name the argument. What
does not: rules and computations, which the programs share. `trimtab/__init__.py` lists the public names. It imports
each of them on first use, and no program of Trimtab imports pandas.
"""
