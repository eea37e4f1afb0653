"""Sets of values that show every part of the chart. Helm and `trimtab install` give equal objects for each."""

from typing import Any

SETS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "almost nothing": {
        "vertical": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "crds": {"install": False},
        "settings": {"feature-gates": "HPASelectionStrategy=false,VPASelectorRefinement=false"},
        "replicas": 1,
    },
    "everything": {
        "adapter": {"enabled": True, "caBundle": "Q0E=", "injectCaFrom": "trimtab/adapter"},
        "dashboard": {"enabled": True, "certificateSecret": "trimtab-dashboard-tls"},
        "settings": {
            "dashboard-hosts": "autoscalers.example",
            "native-hpas": True,
            "include-kube-system": True,
            "ignored-vpa-object-namespaces": "batch,lab",
            "max-evictions-per-minute": 5,
            "metrics-max-bytes": 104857600,
            "horizontal-pod-autoscaler-tolerance": 0.25,
            "admission-check": "lease",
            "node-fit": "allocatable",
            "webhook-timeout-seconds": 3,
            "webhook-failure-policy-fail": True,
            "plugins": "example.com/NotDraining",
            "compat": "kubernetes-1.36",
        },
        "horizontal": {
            "watchNodes": True,
            "replicas": 3,
            "settings": {"shards": 6, "v": 5},
            "extraEnv": [{"name": "TZ", "value": "UTC"}],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 9090}]}],
            "serviceAccount": {"annotations": {"example.com/role": "arn:a:b"}},
            "podLabels": {"tier": "own"},
            "podAnnotations": {"note": 'it\'s: "quoted" {{ and }} odd'},
            "nodeSelector": {"pool": "infra"},
            "tolerations": [{"operator": "Exists"}],
        },
        "vertical": {
            "recommender": {"settings": {"shards": 6}},
            "admission": {"statusLease": {"namespace": "kube-system"}, "certificateSecret": "mine"},
        },
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
        "grafanaDashboard": {"enabled": True},
        "kubeStateMetrics": {"enabled": True},
        "tokenSecret": "trimtab-token",
        "scalable": [{"group": "argoproj.io", "resource": "rollouts"}],
        "priorityClassName": "system-cluster-critical",
        "commonLabels": {"team": "platform"},
        "podLabels": {"tier": "infra"},
        "podAnnotations": {"note": "all", "more": "lines\nof text\n"},
        "imagePullSecrets": [{"name": "registry"}],
        "image": {"digest": "sha256:" + "0a" * 32},
    },
    "native HPAs": {"settings": {"native-hpas": True}},
    "watched namespaces": {
        "settings": {"watch-namespaces": "shop,search", "ignored-vpa-object-namespaces": "search"},
        "horizontal": {"settings": {"shards": 4}},
    },
    "the horizontal autoscaler": {"vertical": {"enabled": False}},
    "the vertical autoscaler": {"horizontal": {"enabled": False}},
    "the adapter": {
        "horizontal": {"enabled": False},
        "vertical": {"enabled": False},
        "adapter": {"enabled": True, "caBundle": "Q0E=", "configuration": "a: 1\nb:\n  - c\n"},
    },
    "the dashboard": {
        "horizontal": {"enabled": False},
        "vertical": {"enabled": False},
        "dashboard": {"enabled": True},
    },
    "a dry run": {
        "settings": {"dry-run": True, "native-hpas": True, "recommender-name": "hot"},
        "dashboard": {"enabled": True},
        "vertical": {"recommender": {"settings": {"shards": 2}}},
    },
    "high availability": {
        "replicas": 3,
        "priorityClassName": "system-cluster-critical",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "trimtab"}},
                    }
                ]
            }
        },
        "horizontal": {"resources": {"requests": {"cpu": "500m"}}},
    },
    "a network policy": {
        "networkPolicy": {
            "apiServerCidrs": ["10.0.0.1/32", "2001:db8::1/128"],
            "apiServerPorts": [6443],
            "monitoringNamespace": "observe",
        },
        "adapter": {"enabled": True, "injectCaFrom": "trimtab/adapter", "prometheusPort": 9091},
        "dashboard": {"enabled": True, "certificateSecret": "page", "ingressNamespace": "ingress"},
        "vertical": {"updater": {"extraEgress": [{"ports": [{"port": 4317}]}]}},
    },
    "monitoring": {
        "serviceMonitor": {"enabled": True, "interval": "15s"},
        "prometheusRule": {"enabled": True},
        "grafanaDashboard": {"enabled": True},
        "kubeStateMetrics": {"enabled": True, "namespace": "observe"},
        "tokenSecret": "trimtab-token",
    },
    "as upstream": {
        "settings": {
            "compat": "kubernetes-1.37,vpa-1.8",
            "webhook-timeout-seconds": 30,
            "native-hpas": True,
        }
    },
    "registering itself": {
        "vertical": {"admission": {"registersItself": True}},
        "settings": {"replacement-check": "none", "recommender-name": "hot", "log-format": "text"},
    },
}
