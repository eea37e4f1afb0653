{{- /* A map as A=true,B=false; Helm walks maps in the order of their keys. */}}
{{- define "trimtab.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . }}{{ $pairs = append $pairs (printf "%s=%v" $key $value) }}{{ end -}}
{{- join "," $pairs -}}
{{- end }}
