{{/* Prometheus Operator's PodMonitor for every pod that has an agent. */}}
{{- define "lastsyn.podMonitor" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "lastsyn.fullname" . }}
  namespace: {{ $release.namespace }}
  labels: {{ merge (include "lastsyn.labels" . | fromYaml) $values.podMonitor.labels | toJson }}
spec:
  selector:
    matchLabels: {{ include "lastsyn.podLabels" . | fromYaml | toJson }}
  namespaceSelector:
    matchNames: {{ include "lastsyn.namespaces" . | fromYaml | keys | sortAlpha | toJson }}
  podMetricsEndpoints:
    - port: lastsyn
      path: /metrics
      interval: {{ $values.podMonitor.interval }}
{{- end -}}
