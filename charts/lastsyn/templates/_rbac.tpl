{{/* Every namespace that has agents, with their ServiceAccounts: the release's own, and those of `agents`. */}}
{{- define "lastsyn.namespaces" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- $accounts := dict $release.namespace (list (include "lastsyn.serviceAccountName" .)) -}}
{{- range $agents := $values.agents -}}
{{- $known := get $accounts $agents.namespace | default list -}}
{{- $accounts = set $accounts $agents.namespace (concat $known $agents.serviceAccounts | uniq) -}}
{{- end -}}
{{- toYaml $accounts -}}
{{- end -}}

{{/*
The rights of the agents. What the lack of each costs: docs/cluster.md. Nodes are cluster-wide, and so is the role to list them.
*/}}
{{- define "lastsyn.rbac" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- $name := include "lastsyn.fullname" . -}}
{{- $labels := include "lastsyn.labels" . | fromYaml -}}
{{- $namespaces := include "lastsyn.namespaces" . | fromYaml -}}
{{- $group := "rbac.authorization.k8s.io" -}}
{{- if $values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "lastsyn.serviceAccountName" . }}
  namespace: {{ $release.namespace }}
  labels: {{ toJson $labels }}
  {{- with $values.serviceAccount.annotations }}
  annotations: {{ toJson . }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- if and $values.rbac.create (include "lastsyn.asksTheCluster" .) }}
{{- $everywhere := list }}
{{- range $namespace, $accounts := $namespaces }}
{{- $subjects := list }}
{{- range $account := $accounts }}
{{- $subjects = append $subjects (dict "kind" "ServiceAccount" "name" $account "namespace" $namespace) }}
{{- end }}
{{- $everywhere = concat $everywhere $subjects }}
---
apiVersion: {{ $group }}/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{ toJson $labels }}
rules:
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
  - {apiGroups: [""], resources: [services], verbs: [list, watch]}
  - {apiGroups: [""], resources: [pods], verbs: [get]}
  {{- if $values.rbac.events }}
  - {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}
  {{- end }}
---
apiVersion: {{ $group }}/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels: {{ toJson $labels }}
roleRef: {apiGroup: {{ $group }}, kind: Role, name: {{ $name }}}
subjects: {{ toJson $subjects }}
{{- end }}
{{- if $values.rbac.nodes }}
---
apiVersion: {{ $group }}/v1
kind: ClusterRole
metadata:
  name: {{ $release.namespace }}-{{ $name }}-nodes
  labels: {{ toJson $labels }}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [list]}
---
apiVersion: {{ $group }}/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $release.namespace }}-{{ $name }}-nodes
  labels: {{ toJson $labels }}
roleRef: {apiGroup: {{ $group }}, kind: ClusterRole, name: {{ $release.namespace }}-{{ $name }}-nodes}
subjects: {{ toJson $everywhere }}
{{- end }}
{{- end }}
{{- end -}}
