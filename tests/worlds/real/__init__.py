"""Random lives of autoscaled workloads on a real API server, where upstream's own programs are the judge.

Each world is played twice at once. Upstream's controller scales the workload of one namespace, Trimtab that of another, and both
meet the same load and the same faults at the same moments.

Reading order: `hpas` (which worlds there are), `profiles` (what befalls the controllers, and the worlds of known defects),
`server` (the API server, the programs and their faults), `workload` (plays a Deployment), `usage` (what its pods use), `metrics`
(serves it), `batch` (plays worlds), `oracle` (which sizes were allowed), `judge` (outcomes, allowances, stories), `play` (the
command). The same beside upstream's VPA programs: `vpas` (which worlds), `nodes` (plays pods), `vpa_batch` (the programs, and a
batch).

What does not belong here: anything that knows how a decision is made.
"""
