"""Values files that must be refused, and some that must not. Helm's verdict is asked for in tests/real/install/test_verdicts.py."""

from typing import Any

BAD: dict[str, dict[str, Any]] = {
    "an unknown value": {"bogus": 1},
    "a misprint in a group": {"horizontal": {"enabeld": False}},
    "a misprint inside a program": {"vertical": {"updater": {"extraEnvs": []}}},
    "text for a number": {"replicas": "abc"},
    "a number below zero": {"replicas": -3},
    "a broken number": {"replicas": 2.5},
    "text for a switch": {"settings": {"dry-run": "yes please"}},
    "a number for a switch": {"horizontal": {"enabled": 1}},
    "a switch for a group": {"adapter": True},
    "a list for a group": {"image": ["trimtab"]},
    "a number for a tag": {"image": {"tag": 1.1}},
    "a repository with its tag": {"image": {"repository": "registry.example.com/trimtab:1.0:2"}},
    "a digest that is none": {"image": {"digest": "sha256:abc"}},
    "an unknown pull policy": {"image": {"pullPolicy": "Sometimes"}},
    "text for a list": {"horizontal": {"customMetrics": "pods/a"}},
    "a list for a text": {"settings": {"watch-namespaces": ["shop"]}},
    "a namespace in capitals": {"settings": {"watch-namespaces": "Shop"}},
    "a namespace with a line break": {"settings": {"watch-namespaces": "shop\n"}},
    "a namespace that is a number": {"settings": {"ignored-vpa-object-namespaces": 7}},
    "an unknown log format": {"settings": {"log-format": "xml"}},
    "an unknown node fit": {"settings": {"node-fit": "some"}},
    "an unknown admission check": {"settings": {"admission-check": "hope"}},
    "an unknown failure policy": {"settings": {"webhook-failure-policy-fail": "Never"}},
    "an unknown version": {"settings": {"compat": "kubernetes-1.12"}},
    "an unknown gate": {"settings": {"feature-gates": "HPAScaleToOne=true"}},
    "text for a gate": {"settings": {"feature-gates": "HPAScaleToZero=maybe"}},
    "a locked gate": {
        "settings": {"compat": "kubernetes-1.37", "feature-gates": "HPAConfigurableTolerance=false"}
    },
    "two versions of Kubernetes": {"settings": {"compat": "kubernetes-1.36,vpa-1.8,kubernetes-1.37"}},
    "a period of no length": {"settings": {"horizontal-pod-autoscaler-sync-period": "0m0.0s"}},
    "no write at a time": {"settings": {"concurrent-horizontal-pod-autoscaler-syncs": 0}},
    "a tolerance below zero": {"settings": {"horizontal-pod-autoscaler-tolerance": -0.1}},
    "a history in words": {"settings": {"history-length": "8 days"}},
    "a name that is too long for a Lease": {"settings": {"recommender-name": "a" * 41}},
    "labels that nothing writes": {"settings": {"webhook-labels": "team:a"}},
    "a period without a unit": {"settings": {"horizontal-pod-autoscaler-sync-period": "15"}},
    "a negative age": {"settings": {"metrics-max-age": "-1s"}},
    "too many shards": {"horizontal": {"settings": {"shards": 17}}},
    "no shard": {"horizontal": {"settings": {"shards": 0}}},
    "shards of a program that has none": {"vertical": {"updater": {"settings": {"shards": 2}}}},
    "shards of all programs": {"settings": {"shards": 2}},
    "a setting that may not differ": {"horizontal": {"settings": {"dry-run": True}}},
    "a secret": {"settings": {"password": "hunter2"}},
    "a port that the installation sets": {"settings": {"webhook-port": 80}},
    "a fraction in words": {"settings": {"horizontal-pod-autoscaler-tolerance": "much"}},
    "nothing to run": {"horizontal": {"enabled": False}, "vertical": {"enabled": False}},
    "a long timeout": {"settings": {"webhook-timeout-seconds": 9}},
    "a timeout of zero": {"settings": {"webhook-timeout-seconds": 0}},
    "a very long timeout, as upstream": {
        "settings": {"compat": "vpa-1.8", "webhook-timeout-seconds": 31},
    },
    "evictions in words": {"settings": {"max-evictions-per-minute": "ten"}},
    "replicas below zero": {"settings": {"min-replicas": -1}},
    "half a kind": {"scalable": [{"group": "argoproj.io"}]},
    "a kind with a version": {
        "scalable": [{"group": "argoproj.io", "resource": "rollouts", "version": "v1"}]
    },
    "a port above the last": {"adapter": {"prometheusPort": 99999}},
    "a port by name": {"networkPolicy": {"apiServerPorts": ["https"]}},
    "an address without its range": {"networkPolicy": {"apiServerCidrs": ["10.0.0.1"]}},
    "an address above 255": {"networkPolicy": {"apiServerCidrs": ["300.0.0.0/0"]}},
    "a range of 33 bits": {"networkPolicy": {"apiServerCidrs": ["10.0.0.0/33"]}},
    "an address of nine numbers": {"networkPolicy": {"apiServerCidrs": ["1:2:3:4:5:6:7:8:9/64"]}},
    "no address of the API server": {"networkPolicy": {"apiServerCidrs": []}},
    "an address of Prometheus without a scheme": {"adapter": {"prometheus": "prometheus:9090"}},
    "an adapter without a CA": {"adapter": {"enabled": True}},
    "a CA that is not base64": {"adapter": {"enabled": True, "caBundle": "-----BEGIN"}},
    "a label that is a number": {"nodeSelector": {"pool": 7}},
    "a label that Services select by": {"podLabels": {"app.kubernetes.io/name": "mine"}},
    "a key with a blank": {"commonLabels": {"a b": "foo"}},
    "a key with two slashes": {"podLabels": {"a/b/c": "foo"}},
    "a label with a blank": {"horizontal": {"podLabels": {"a": "b c"}}},
    "a node's label with a blank": {"nodeSelector": {"pool name": "infra"}},
    "memory in words": {"horizontal": {"resources": {"limits": {"memory": "plenty"}}}},
    "an unknown field of resources": {"horizontal": {"resources": {"limit": {"memory": "1Gi"}}}},
    "a misprint in a toleration": {"tolerations": [{"key": "infra", "opertor": "Exists"}]},
    "a variable without a name": {"horizontal": {"extraEnv": [{"value": "1"}]}},
    "extra arguments": {"horizontal": {"extraArgs": ["--v=1"]}},
    "a spread over nothing": {"dashboard": {"topologySpreadConstraints": [{"maxSkew": 1}]}},
    "an annotation of an account that is a switch": {
        "adapter": {"serviceAccount": {"annotations": {"a": True}}}
    },
    "a value removed": {"replicas": None},
    "a group removed": {"vertical": {"admission": None}},
}
"""Each differs from the defaults by what its name says."""

GOOD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no replicas": {"replicas": 0},
    "another gate": {"settings": {"feature-gates": "HPAScaleToZero=false,AllAlpha=true"}},
    "as upstream, patiently": {
        "settings": {"compat": "vpa-1.8,kubernetes-1.37", "webhook-timeout-seconds": 30},
    },
    "a bounded number of evictions": {"settings": {"max-evictions-per-minute": 5}},
    "one shard": {"horizontal": {"settings": {"shards": 1}}},
    "a large number": {"settings": {"metrics-max-bytes": 104857600}},
    "fractions": {"settings": {"eviction-tolerance": 0.25, "cpu-histogram-decay-half-life": "24h"}},
    "a pinned image": {"image": {"repository": "ghcr.io/trimtab/trimtab", "digest": "sha256:" + "0a" * 32}},
    "an adapter alone": {
        "horizontal": {"enabled": False},
        "vertical": {"enabled": False},
        "adapter": {"enabled": True, "caBundle": "Q0E="},
    },
    "a gate that no version has locked": {"settings": {"feature-gates": "HPAConfigurableTolerance=false"}},
    "labels that admission writes": {
        "settings": {"webhook-labels": "team:a,tier:"},
        "vertical": {"admission": {"registersItself": True}},
    },
    "none of what all programs have": {
        "tolerations": [{"operator": "Exists"}],
        "horizontal": {"tolerations": [], "topologySpreadConstraints": [], "securityContext": {}},
    },
    "two shards": {
        "horizontal": {"settings": {"shards": 2}},
        "vertical": {"recommender": {"settings": {"shards": 16}}},
    },
    "labels with a domain": {"commonLabels": {"example.com/Team_1": "A.b-c_1", "empty": ""}},
    "narrow addresses": {"networkPolicy": {"apiServerCidrs": ["10.0.0.1/32", "2001:db8::1/128"]}},
    "an adapter with a CA": {"adapter": {"enabled": True, "caBundle": "Q0E="}},
    "numbers as quantities": {"horizontal": {"resources": {"limits": {"cpu": 1, "memory": 1073741824}}}},
    "a security context of another platform": {"podSecurityContext": {"runAsUser": None, "fsGroup": None}},
    "odd durations": {
        "settings": {"horizontal-pod-autoscaler-sync-period": "1m30.5s", "metrics-max-age": "0"}
    },
    "everything of one program": {
        "commonLabels": {"team": "platform"},
        "vertical": {
            "updater": {
                "settings": {"v": 1},
                "replicas": 3,
                "extraEnv": [{"name": "TZ", "value": "UTC"}],
                "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 9090}]}],
                "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}},
                "podLabels": {"tier": "infra"},
                "podAnnotations": {"note": 'it\'s: "quoted" {{ and }} odd'},
                "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 1000},
                "securityContext": {"readOnlyRootFilesystem": True},
                "nodeSelector": {"pool": "infra"},
                "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
                "affinity": {"nodeAffinity": {}},
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 2,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                    }
                ],
            }
        },
    },
}
"""Accepted, and rendered to the same objects by both."""
