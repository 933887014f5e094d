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

{{/* Prometheus Operator's PrometheusRule with this chart's alerts. */}}
{{- define "lastsyn.prometheusRule" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ include "lastsyn.fullname" . }}
  namespace: {{ $release.namespace }}
  labels: {{ merge (include "lastsyn.labels" . | fromYaml) $values.prometheusRule.labels | toJson }}
spec: {{ .Files.Get "rules/lastsyn.yaml" | fromYaml | toJson }}
{{- end -}}

{{/* A ConfigMap with the dashboard, as Grafana's sidecar reads it. */}}
{{- define "lastsyn.dashboard" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "lastsyn.fullname" . }}-dashboard
  namespace: {{ $release.namespace }}
  labels: {{ merge (include "lastsyn.labels" . | fromYaml) $values.dashboard.labels | toJson }}
data:
  lastsyn.json: {{ .Files.Get "dashboards/lastsyn.json" | toJson }}
{{- end -}}
