{{/* The cluster's fence (docs/fence.md), where agents find it: the one of this release, or another; nothing where there is none. */}}
{{- define "lastsyn.fenceUrl" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- if $values.fence.url -}}
{{- $values.fence.url -}}
{{- else if $values.fence.enabled -}}
{{- printf "http://%s.%s:%d" (include "lastsyn.fenceName" .) $release.namespace (int $values.fence.port) -}}
{{- end -}}
{{- end -}}

{{- define "lastsyn.fenceName" -}}
{{- printf "%s-fence" (include "lastsyn.fullname" . | trunc 57 | trimSuffix "-") -}}
{{- end -}}

{{- define "lastsyn.fenceLabels" -}}
{{ include "lastsyn.labels" . }}
app.kubernetes.io/component: fence
{{- end -}}

{{/* What selects its pods. */}}
{{- define "lastsyn.fenceSelector" -}}
app.kubernetes.io/name: lastsyn
app.kubernetes.io/instance: {{ (include "lastsyn.release" . | fromYaml).name }}
app.kubernetes.io/component: fence
{{- end -}}

{{/* "true" where agents are told of the cluster by the fence, and have no token. */}}
{{- define "lastsyn.toldByTheFence" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- if eq $values.fence.source "fence" -}}
{{- if not (include "lastsyn.fenceUrl" .) -}}
{{- fail "lastsyn: fence.source is `fence`, and there is no fence: set fence.enabled, or fence.url where another release has it" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* The fence's configuration: the sections of `config` that it reads too. */}}
{{- define "lastsyn.fenceEnv" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_IPS" "status.podIPs" }}
- name: {{ $name }}
  valueFrom: {fieldRef: {fieldPath: {{ $path }}}}
{{- end }}
- {name: LASTSYN_FENCE_ADDRESS, value: {{ printf "[::]:%d" (int $values.fence.port) | quote }}}
{{- $tree := pick $values.config "fence" "log" }}
{{- with pick (dig "routing" dict $values.config) "kubeProxyHealthzPort" "ignoreNodes" "poll" }}
{{- $tree = set $tree "routing" . }}
{{- end }}
{{- include "lastsyn.variables" (dict "tree" $tree "path" list "own" (dict "fence.address" "fence.port")) }}
{{- end -}}

{{/* Two replicas, of which one writes at a time; what either of them lacks shows when it is asked. */}}
{{- define "lastsyn.fenceDeployment" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $release := include "lastsyn.release" . | fromYaml -}}
{{- $name := include "lastsyn.fenceName" . -}}
{{- $selector := include "lastsyn.fenceSelector" . | fromYaml -}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ include "lastsyn.fenceLabels" . | fromYaml | toJson }}
spec:
  replicas: {{ int $values.fence.replicas }}
  selector:
    matchLabels: {{ toJson $selector }}
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels: {{ include "lastsyn.fenceLabels" . | fromYaml | toJson }}
    spec:
      serviceAccountName: {{ $name }}
      {{- with $values.fence.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.fence.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      {{- with $values.fence.tolerations }}
      tolerations: {{ toJson . }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{ toJson $selector }}
      containers:
        - name: fence
          image: {{ include "lastsyn.image" . | quote }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: [lastsyn, fence]
          env:
            {{- include "lastsyn.fenceEnv" . | trim | nindent 12 }}
          ports:
            - {name: fence, containerPort: {{ int $values.fence.port }}, protocol: TCP}
          livenessProbe:
            httpGet: {path: /healthz, port: fence}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: fence}
            periodSeconds: 5
            timeoutSeconds: 5
          resources: {{ toJson $values.fence.resources }}
          securityContext:
            {{- include "lastsyn.unprivileged" . | trim | nindent 12 }}
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
            seccompProfile: {{ toJson $values.seccompProfile }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ include "lastsyn.fenceLabels" . | fromYaml | toJson }}
spec:
  selector: {{ toJson $selector }}
  ports:
    - {name: fence, port: {{ int $values.fence.port }}, targetPort: fence, protocol: TCP}
{{- if gt (int $values.fence.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $release.namespace }}
  labels: {{ include "lastsyn.fenceLabels" . | fromYaml | toJson }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{ toJson $selector }}
{{- end }}
{{- end -}}
