{{- /*
A Deployment, with the context of a program and

    "components"   what runs in it; the adapter is a command of its own and has none
    "flags"        flags that this chart sets
    "port"         name and number of its own port besides that of health and metrics, as (list "webhook" 8000)
    "certificate"  the Secret that is mounted into /etc/trimtab/certificate
*/}}
{{- define "trimtab.deployment" }}
{{- $values := .root.Values }}
{{- $own := .own }}
{{- /* What a program has for itself counts more than what all have, even if it is empty. */}}
{{- $pod := dict }}
{{- range $field := list "replicas" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "podSecurityContext" "securityContext" }}
{{- $_ := set $pod $field (get (ternary $own $values (hasKey $own $field)) $field) }}
{{- end }}
{{- $isAdapter := eq .component "adapter" }}
{{- $port := ternary "api" "health" $isAdapter }}
{{- $scheme := ternary "HTTPS" "HTTP" $isAdapter }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trimtab-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "trimtab.labels" . | nindent 4 }}
spec:
  {{- if eq .component "dashboard" }}
  # Sessions are in memory, so a second replica could not serve them.
  replicas: 1
  {{- else }}
  replicas: {{ $pod.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "trimtab.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "trimtab.selector" . | nindent 8 }}
        {{- with include "trimtab.overlaid" (list $values.commonLabels $values.podLabels (get $own "podLabels" | default (dict))) }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- with include "trimtab.overlaid" (list $values.podAnnotations (get $own "podAnnotations" | default (dict))) }}
      annotations:
        {{- . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: trimtab-{{ .component }}
      automountServiceAccountToken: true
      # Variables about Services have the names of settings: TRIMTAB_WEBHOOK_PORT=tcp://10.96.53.214:443.
      enableServiceLinks: false
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      {{- range $field := list "nodeSelector" "tolerations" "affinity" }}
      {{- with get $pod $field }}
      {{ $field }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with $pod.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range $constraint := . }}
        - labelSelector:
            matchLabels:
              {{- include "trimtab.selector" $ | nindent 14 }}
          {{- toYaml $constraint | nindent 10 }}
        {{- end }}
      {{- end }}
      {{- with $pod.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "trimtab.image" .root | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            {{- if $isAdapter }}
            - adapter
            - --config=/etc/trimtab/adapter/adapter.yaml
            {{- else }}
            - run
            - --components={{ .components }}
            - "--bind-address=::"
            - --port=8080
            # Our own features, which the program alone leaves off. `settings` can switch them off again: the last value counts.
            - --feature-gates=HPASelectionStrategy=true,VPASelectorRefinement=true
            {{- end }}
            {{- range $flag := .flags }}
            - {{ $flag | quote }}
            {{- end }}
            {{- with include "trimtab.flags" . }}
            {{- . | nindent 12 }}
            {{- end }}
          {{- $token := ternary "" $values.tokenSecret $isAdapter }}
          {{- if or $token (get $own "extraEnv") }}
          env:
            {{- with $token }}
            - name: TRIMTAB_TOKEN
              valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: token}}
            {{- end }}
            {{- with get $own "extraEnv" }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
          ports:
            {{- if not $isAdapter }}
            - {name: health, containerPort: 8080, protocol: TCP}
            {{- end }}
            {{- with .port }}
            - {name: {{ index . 0 }}, containerPort: {{ index . 1 }}, protocol: TCP}
            {{- end }}
          livenessProbe:
            httpGet: {path: /livez, port: {{ $port }}, scheme: {{ $scheme }}}
            timeoutSeconds: 3
            periodSeconds: 10
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /readyz, port: {{ $port }}, scheme: {{ $scheme }}}
            timeoutSeconds: 3
            periodSeconds: 5
          # The first lists of a big cluster take their time; nothing is restarted meanwhile.
          startupProbe:
            httpGet: {path: /livez, port: {{ $port }}, scheme: {{ $scheme }}}
            timeoutSeconds: 3
            periodSeconds: 2
            failureThreshold: 60
          {{- with $own.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $pod.securityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if $isAdapter }}
            - {name: configuration, mountPath: /etc/trimtab/adapter, readOnly: true}
            {{- else if .certificate }}
            - {name: certificate, mountPath: /etc/trimtab/certificate, readOnly: true}
            {{- end }}
      volumes:
        # Private keys pass through files on their way into the TLS library: in memory, never on a disk.
        - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
        {{- if $isAdapter }}
        # One volume, because the adapter reads no file outside of its configuration's directory.
        - name: configuration
          projected:
            defaultMode: 0440
            sources:
              - configMap: {name: trimtab-adapter}
              - secret: {name: {{ .certificate | quote }}}
        {{- else if .certificate }}
        - {name: certificate, secret: {secretName: {{ .certificate | quote }}, defaultMode: 0440}}
        {{- end }}
{{- end }}
