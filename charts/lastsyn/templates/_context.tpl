{{/*
The chart's values, wherever a template of it is included from: in this chart, in a chart that depends on it, or with values of
one's own: (dict "context" $ "values" $values), as for a dependency with an alias, or several workloads in one chart.
*/}}
{{- define "lastsyn.values" -}}
{{- if hasKey . "values" -}}
{{- toYaml .values -}}
{{- else if eq .Chart.Name "lastsyn" -}}
{{- toYaml .Values -}}
{{- else if hasKey .Values "lastsyn" -}}
{{- toYaml .Values.lastsyn -}}
{{- else -}}
{{- fail "lastsyn: the values of the dependency `lastsyn` are not there; where it has an alias, include the template with (dict \"context\" $ \"values\" .Values.ALIAS)" -}}
{{- end -}}
{{- end -}}

{{/* The root of the chart that includes. */}}
{{- define "lastsyn.release" -}}
{{- $root := . -}}
{{- if hasKey . "values" -}}{{- $root = .context -}}{{- end -}}
{{- toYaml (dict "name" $root.Release.Name "namespace" $root.Release.Namespace "service" $root.Release.Service) -}}
{{- end -}}

{{/* The name of what is made beside the workload. */}}
{{- define "lastsyn.fullname" -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- if contains "lastsyn" $release.name -}}
{{- $release.name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-lastsyn" ($release.name | trunc 55 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "lastsyn.labels" -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
app.kubernetes.io/name: lastsyn
app.kubernetes.io/instance: {{ $release.name }}
app.kubernetes.io/managed-by: {{ $release.service }}
{{- end -}}

{{/* The label of pods that have an agent; PodMonitor and NetworkPolicy select by it. */}}
{{- define "lastsyn.podLabels" -}}
lastsyn-agent: "true"
{{- end -}}

{{- define "lastsyn.serviceAccountName" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- if $values.serviceAccount.name -}}
{{- $values.serviceAccount.name -}}
{{- else if $values.serviceAccount.create -}}
{{- include "lastsyn.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "lastsyn.image" -}}
{{- $image := (include "lastsyn.values" . | fromYaml).image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository $image.tag -}}
{{- end -}}
{{- end -}}
