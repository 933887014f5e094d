{{/*
What agents need where pods may not reach everything: DNS is not among it. Kubernetes denies a selected pod whatever no policy
allows, so that this is for namespaces that restrict egress already.
*/}}
{{- define "lastsyn.networkPolicy" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $policy := $values.networkPolicy -}}
{{- $name := include "lastsyn.fullname" . -}}
{{- $labels := include "lastsyn.labels" . | fromYaml -}}
{{- $podLabels := include "lastsyn.podLabels" . | fromYaml -}}
{{- $nodePort := dig "routing" "kubeProxyHealthzPort" 10256 $values.config | int -}}
{{- $told := include "lastsyn.toldByTheFence" . -}}
{{- $fence := include "lastsyn.fenceUrl" . -}}
{{- if and (not $told) (or (not $policy.apiServer.cidrs) (not $policy.nodes.cidrs)) -}}
{{- fail "lastsyn: networkPolicy.create needs networkPolicy.apiServer.cidrs and networkPolicy.nodes.cidrs: without them agents reach neither, and no drain is confirmed" -}}
{{- end -}}
{{- range $namespace := include "lastsyn.namespaces" . | fromYaml | keys | sortAlpha }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{ toJson $labels }}
spec:
  podSelector:
    matchLabels: {{ toJson $podLabels }}
  policyTypes: {{ ternary (list "Ingress" "Egress") (list "Egress") (not (empty $policy.metricsFrom)) | toJson }}
  egress:
    {{- if $fence }}
    {{- /* Whichever release has it, and whatever its port is. */}}
    - to:
        - namespaceSelector: {}
          podSelector:
            matchLabels: {app.kubernetes.io/name: lastsyn, app.kubernetes.io/component: fence}
      ports:
        - {protocol: TCP, port: {{ regexFind ":[0-9]+/?$" $fence | trimPrefix ":" | trimSuffix "/" | default "19481" | int }}}
    {{- end }}
    {{- if not $told }}
    - to:
        {{- range $cidr := $policy.apiServer.cidrs }}
        - ipBlock: {cidr: {{ $cidr | quote }}}
        {{- end }}
      ports:
        {{- range $port := $policy.apiServer.ports }}
        - {protocol: TCP, port: {{ int $port }}}
        {{- end }}
    {{- if $nodePort }}
    - to:
        {{- range $cidr := $policy.nodes.cidrs }}
        - ipBlock: {cidr: {{ $cidr | quote }}}
        {{- end }}
      ports:
        - {protocol: TCP, port: {{ $nodePort }}}
    {{- end }}
    {{- end }}
  {{- with $policy.metricsFrom }}
  ingress:
    - from: {{ toJson . }}
      ports:
        - {protocol: TCP, port: {{ int $values.port }}}
  {{- end }}
{{- end }}
{{- end -}}
