{{- /* Names of roles, their bindings, and the rules that several programs share. The context is that of a program. */}}

{{- define "trimtab.clusterRole" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  # Two installations must not share a role, so the name contains the namespace.
  name: {{ .root.Release.Namespace }}-{{ .name }}
  labels:
    {{- include "trimtab.labels" (dict "root" .root "component" "") | nindent 4 }}
{{- end }}

{{- /* A binding over the whole cluster. */}}
{{- define "trimtab.clusterBinding" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .root.Release.Namespace }}-{{ .name }}
  labels:
    {{- include "trimtab.labels" (dict "root" .root "component" "") | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .root.Release.Namespace }}-{{ .name }}}
subjects:
  - {kind: ServiceAccount, name: trimtab-{{ .component }}, namespace: {{ .root.Release.Namespace | quote }}}
{{- end }}

{{- /* The binding of the role over the users' objects: in the watched namespaces, or everywhere. */}}
{{- define "trimtab.userBindings" }}
{{- $watched := include "trimtab.watchNamespaces" .root }}
{{- if not $watched }}
{{- include "trimtab.clusterBinding" (dict "root" .root "component" .component "name" .component) }}
{{- else }}
{{- range $namespace := splitList "," $watched }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  # In our own namespace there is a RoleBinding with the program's name already.
  name: {{ $.root.Release.Namespace }}-{{ $.component }}-in-namespace
  namespace: {{ $namespace | quote }}
  labels:
    {{- include "trimtab.labels" $ | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $.root.Release.Namespace }}-{{ $.component }}}
subjects:
  - {kind: ServiceAccount, name: trimtab-{{ $.component }}, namespace: {{ $.root.Release.Namespace | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- /* A Role in one namespace with its binding; the rules follow. */}}
{{- define "trimtab.role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- include "trimtab.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects:
  - {kind: ServiceAccount, name: trimtab-{{ .component }}, namespace: {{ .root.Release.Namespace | quote }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | quote }}
  labels:
    {{- include "trimtab.labels" . | nindent 4 }}
{{- end }}

{{- /* The number of shards in a program's own settings, or nothing if there is one. */}}
{{- define "trimtab.shards" -}}
{{- $shards := get (get . "settings" | default (dict)) "shards" | default 1 | toJson -}}
{{- if ne $shards "1" }}{{ $shards }}{{ end -}}
{{- end }}

{{- /*
Over the Leases of a program, by which one replica at a time decides about an object. They do not depend on the number of shards, so that
replicas with another number can still renew theirs in a rollout. "lease" is the name that all begin with, "isSharded" whether there are
those of shards and of their members.
*/}}
{{- define "trimtab.leaseRules" }}
{{- $lease := .lease }}
{{- if get .root.Values.settings "dry-run" }}
{{- /* A dry run must not take the Leases of a program that acts. */}}
{{- $lease = printf "%s-dry-run" $lease }}
{{- end }}
# Who takes a Lease lists them all. RBAC cannot restrict creation by name; a ValidatingAdmissionPolicy does.
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, list]}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, update]
  resourceNames:
    {{- if .isSharded }}
    {{- range $kind := list "" "member-" }}
    {{- range $number := until 16 }}
    - {{ $lease }}-{{ $kind }}{{ $number }}
    {{- end }}
    {{- end }}
    {{- else }}
    - {{ $lease }}-0
    {{- end }}
# The published settings.
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [patch], resourceNames: [{{ $lease }}-settings]}
{{- end }}

{{- /* Kinds of `scalable`: to follow the owners of pods, and to read or write their scale. */}}
{{- define "trimtab.ownerRules" }}
{{- range $kind := .root.Values.scalable }}
# An owner of pods that `scalable` names.
- {apiGroups: [{{ $kind.group | quote }}], resources: [{{ $kind.resource | quote }}], verbs: [get]}
{{- end }}
{{- end }}
{{- define "trimtab.scaleRules" }}
{{- range $kind := .root.Values.scalable }}
# Its replicas, and the selector of its pods.
- {apiGroups: [{{ $kind.group | quote }}], resources: [{{ printf "%s/scale" $kind.resource | quote }}], verbs: {{ toJson $.verbs }}}
{{- end }}
{{- end }}

{{- /* What an HPA is decided from. The dashboard decides itself what it shows, so it reads the same. */}}
{{- define "trimtab.hpaView" }}
# The pods that count, and who owns them.
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
# An owner that the watch does not show is read: it may be newer than the watch, or gone.
- {apiGroups: [""], resources: [replicationcontrollers], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments, replicasets, statefulsets, daemonsets], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [cronjobs], verbs: [get]}
{{- include "trimtab.ownerRules" . }}
- {apiGroups: [autoscaling.trimtab.dev], resources: [horizontalpodautoscalers], verbs: [list, watch]}
{{- if get .root.Values.settings "native-hpas" }}
- {apiGroups: [autoscaling], resources: [horizontalpodautoscalers], verbs: [list, watch]}
{{- else }}
# A native HPA on the same target: then an own HPA does not act.
- {apiGroups: [autoscaling], resources: [horizontalpodautoscalers], verbs: [list]}
{{- end }}
# Usage. RBAC takes the name of a metric for a resource, and names are unknown at installation.
- {apiGroups: [metrics.k8s.io], resources: [pods], verbs: [list]}
- {apiGroups: [custom.metrics.k8s.io], resources: {{ toJson .root.Values.horizontal.customMetrics }}, verbs: [get]}
- {apiGroups: [external.metrics.k8s.io], resources: {{ toJson .root.Values.horizontal.externalMetrics }}, verbs: [list]}
{{- end }}

{{- /* The groups of VPAs that are acted on, as a list in YAML. */}}
{{- define "trimtab.vpaGroups" -}}
[autoscaling.trimtab.dev{{ if get .Values.settings "native-vpas" }}, autoscaling.k8s.io{{ end }}]
{{- end }}

{{- /* What a VPA is decided from: its pods, their owners, and the VPAs. */}}
{{- define "trimtab.vpaView" }}
# The pods that a VPA matches, and who owns them.
- {apiGroups: [""], resources: [pods, replicationcontrollers], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments, replicasets, statefulsets, daemonsets], verbs: [list, watch]}
- {apiGroups: [batch], resources: [jobs, cronjobs], verbs: [list, watch]}
- {apiGroups: {{ include "trimtab.vpaGroups" .root }}, resources: [verticalpodautoscalers], verbs: [list, watch]}
- {apiGroups: [autoscaling.trimtab.dev], resources: [vpascopes], verbs: [list, watch]}
{{- include "trimtab.ownerRules" . }}
{{- include "trimtab.scaleRules" (dict "root" .root "verbs" (list "get")) }}
{{- end }}

{{- /* What programs read that size pods. */}}
{{- define "trimtab.sizeView" }}
# LimitRanges bound the size.
- {apiGroups: [""], resources: [limitranges], verbs: [list, watch]}
{{- include "trimtab.vpaView" . }}
{{- end }}

{{- define "trimtab.templateView" }}
# The replacement of a pod is made from its controller's template.
- {apiGroups: [""], resources: [pods, replicationcontrollers], verbs: [get]}
- {apiGroups: [apps], resources: [replicasets, statefulsets, daemonsets], verbs: [get]}
- {apiGroups: [batch], resources: [jobs], verbs: [get]}
{{- end }}

{{- define "trimtab.events" }}
# What it did and why, on the object that it is about.
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
{{- end }}

{{- define "trimtab.reviews" }}
# Who asks, and whether they may.
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
{{- end }}
