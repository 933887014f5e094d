{{/*
The fence's rights. It writes in its own namespace alone. Who may ask is seen by slices and pods, everywhere; Services and watches
are for agents without a token (`fence.source: fence`).
*/}}
{{- define "lastsyn.fenceRbac" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- $name := include "lastsyn.fenceName" . -}}
{{- $labels := include "lastsyn.fenceLabels" . | fromYaml -}}
{{- $group := "rbac.authorization.k8s.io" -}}
{{- $subjects := list (dict "kind" "ServiceAccount" "name" $name "namespace" $release.namespace) -}}
{{- $told := include "lastsyn.toldByTheFence" . -}}
{{- $asks := ne (toString (dig "fence" "callers" "endpoints" $values.config)) "any" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ toJson $labels }}
---
apiVersion: {{ $group }}/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ toJson $labels }}
rules:
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, create, update, delete]}
  - {apiGroups: [""], resources: [services], verbs: [list, create, patch, delete]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
---
apiVersion: {{ $group }}/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ toJson $labels }}
roleRef: {apiGroup: {{ $group }}, kind: Role, name: {{ $name }}}
subjects: {{ toJson $subjects }}
---
apiVersion: {{ $group }}/v1
kind: ClusterRole
metadata:
  name: {{ $release.namespace }}-{{ $name }}
  labels: {{ toJson $labels }}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [list]}
  {{- if $told }}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
  - {apiGroups: [""], resources: [services], verbs: [list, watch]}
  - {apiGroups: [""], resources: [pods], verbs: [get]}
  {{- else if $asks }}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list]}
  - {apiGroups: [""], resources: [pods], verbs: [get]}
  {{- end }}
---
apiVersion: {{ $group }}/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $release.namespace }}-{{ $name }}
  labels: {{ toJson $labels }}
roleRef: {apiGroup: {{ $group }}, kind: ClusterRole, name: {{ $release.namespace }}-{{ $name }}}
subjects: {{ toJson $subjects }}
{{- end -}}

{{/* Who reaches the fence, and whom it reaches: agents of all namespaces; the API server, and of the nodes the two ports that it asks. */}}
{{- define "lastsyn.fencePolicy" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- $policy := $values.networkPolicy -}}
{{- $port := int $values.fence.port -}}
{{- if or (not $policy.apiServer.cidrs) (not $policy.nodes.cidrs) -}}
{{- fail "lastsyn: networkPolicy.create needs networkPolicy.apiServer.cidrs and networkPolicy.nodes.cidrs: without them the fence reaches neither, and answers nobody" -}}
{{- end -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "lastsyn.fenceName" . }}
  namespace: {{ $release.namespace }}
  labels: {{ include "lastsyn.fenceLabels" . | fromYaml | toJson }}
spec:
  podSelector:
    matchLabels: {{ include "lastsyn.fenceSelector" . | fromYaml | toJson }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - namespaceSelector: {}
          podSelector:
            matchLabels: {{ include "lastsyn.podLabels" . | fromYaml | toJson }}
        {{- with $policy.metricsFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {protocol: TCP, port: {{ $port }}}
  egress:
    - to:
        {{- range $cidr := $policy.apiServer.cidrs }}
        - ipBlock: {cidr: {{ $cidr | quote }}}
        {{- end }}
      ports:
        {{- range $port := $policy.apiServer.ports }}
        - {protocol: TCP, port: {{ int $port }}}
        {{- end }}
    - to:
        {{- range $cidr := $policy.nodes.cidrs }}
        - ipBlock: {cidr: {{ $cidr | quote }}}
        {{- end }}
      ports:
        - {protocol: TCP, port: {{ dig "routing" "kubeProxyHealthzPort" 10256 $values.config | int }}}
        {{- /* The healthCheckNodePorts of its two Services are of this range. */}}
        - {protocol: TCP, port: {{ int (index $values.fence.nodePorts 0) }}, endPort: {{ int (index $values.fence.nodePorts 1) }}}
{{- end -}}

{{/* Prometheus Operator's ServiceMonitor for the fence. */}}
{{- define "lastsyn.fenceMonitor" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "lastsyn.fenceName" . }}
  namespace: {{ $release.namespace }}
  labels: {{ merge (include "lastsyn.fenceLabels" . | fromYaml) $values.fence.serviceMonitor.labels | toJson }}
spec:
  selector:
    matchLabels: {{ include "lastsyn.fenceSelector" . | fromYaml | toJson }}
  endpoints:
    - port: fence
      path: /metrics
      interval: {{ $values.fence.serviceMonitor.interval }}
{{- end -}}
