{{- define "netqos.labels" -}}
app.kubernetes.io/name: netqos
app.kubernetes.io/part-of: netqos
{{- end -}}
