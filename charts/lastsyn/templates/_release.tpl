{{/*
"true" where this chart installs something itself. As a dependency it is there for its templates, and the chart that includes
them says what is made, unless `install` is `always`.
*/}}
{{- define "lastsyn.installs" -}}
{{- if or (eq .Values.install "always") (and (eq .Values.install "auto") .Chart.IsRoot) -}}true{{- end -}}
{{- end -}}
