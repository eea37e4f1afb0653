{{- /*
Names and labels. Most templates below take the context of one program:

    dict "root" $ "component" "updater" "own" .Values.vertical.updater

"root" is what Helm passes to a file, "own" are the program's values. A cluster object has the component "".
*/}}

{{- /* The programs that run, as "horizontal,recommender,updater,admission". */}}
{{- define "trimtab.programs" -}}
{{- $programs := list -}}
{{- if .Values.horizontal.enabled }}{{ $programs = append $programs "horizontal" }}{{ end -}}
{{- if .Values.vertical.enabled }}{{ $programs = concat $programs (list "recommender" "updater" "admission") }}{{ end -}}
{{- if .Values.adapter.enabled }}{{ $programs = append $programs "adapter" }}{{ end -}}
{{- if .Values.dashboard.enabled }}{{ $programs = append $programs "dashboard" }}{{ end -}}
{{- join "," $programs -}}
{{- end }}

{{- define "trimtab.selector" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "trimtab.labels" -}}
app.kubernetes.io/name: trimtab
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trimtab.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Several maps as one; the last counts. */}}
{{- define "trimtab.overlaid" -}}
{{- $overlaid := dict -}}
{{- range $map := . }}{{ range $key, $value := $map }}{{ $_ := set $overlaid $key $value }}{{ end }}{{ end -}}
{{- with $overlaid }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- /* A value as the text of a flag. Helm holds 104857600 as a float, which only toJson writes without an exponent. */}}
{{- define "trimtab.text" -}}
{{ if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- /* The flags of a program: every setting that it reads and that is set, by its own `settings` or by those of all. */}}
{{- define "trimtab.flags" -}}
{{- $own := get .own "settings" | default (dict) -}}
{{- $all := .root.Values.settings -}}
{{- $flags := list -}}
{{- range $flag := get (.root.Files.Get "files/settings.yaml" | fromYaml) .component -}}
{{- if or (hasKey $own $flag) (hasKey $all $flag) -}}
{{- $value := get (ternary $own $all (hasKey $own $flag)) $flag -}}
{{- $flags = append $flags (printf "--%s=%s" $flag (include "trimtab.text" $value)) -}}
{{- end -}}
{{- end -}}
{{- with $flags }}{{ toYaml . }}{{ end -}}
{{- end }}

{{- /* The namespaces of our own that programs work in, as "shop,search"; empty for all. */}}
{{- define "trimtab.watchNamespaces" -}}
{{ get .Values.settings "watch-namespaces" }}
{{- end }}

{{- /* The namespace of the Lease by which admission shows that it runs. */}}
{{- define "trimtab.statusNamespace" -}}
{{ .Values.vertical.admission.statusLease.namespace | default .Release.Namespace }}
{{- end }}

{{- /* The name of both webhook configurations, as admission looks for it. */}}
{{- define "trimtab.webhookName" -}}
{{- $naming := get .Values.settings "webhook-naming" | default (ternary "upstream" "trimtab" (contains "vpa-1.8" (get .Values.settings "compat"))) }}
{{- if eq $naming "upstream" }}vpa-webhook-config{{ else }}{{ .Release.Namespace }}-vpa{{ end }}
{{- end }}
