{{/*
The agent: one item for `initContainers` (`mode: native`) or for `containers` (`mode: container`). It has a liveness probe alone:
it must not affect the pod's readiness or start.
*/}}
{{- define "lastsyn.sidecar" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
- name: lastsyn
  image: {{ include "lastsyn.image" . | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  {{- if eq $values.mode "native" }}
  restartPolicy: Always
  {{- end }}
  command: [lastsyn, run]
  env:
    {{- include "lastsyn.env" . | trim | nindent 4 }}
  ports:
    - {name: lastsyn, containerPort: {{ int $values.port }}, protocol: TCP}
  livenessProbe:
    httpGet: {path: /healthz, port: lastsyn}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  lifecycle:
    preStop:
      exec: {command: [lastsyn, drain, --mark]}
  resources: {{ toJson $values.resources }}
  securityContext:
    {{- include "lastsyn.securityContext" . | trim | nindent 4 }}
  volumeMounts:
    - {name: lastsyn, mountPath: /run/lastsyn}
    {{- include "lastsyn.tokenMount" . | trim | nindent 4 }}
    {{- with $values.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Puts the hook's program where the server's container finds it: one item for `initContainers`. */}}
{{- define "lastsyn.install" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
- name: lastsyn-install
  image: {{ include "lastsyn.image" . | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  command: [lastsyn, install, /run/lastsyn]
  resources: {{ toJson $values.resources }}
  securityContext:
    {{- include "lastsyn.unprivileged" . | trim | nindent 4 }}
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
    seccompProfile: {{ toJson $values.seccompProfile }}
  volumeMounts:
    - {name: lastsyn, mountPath: /run/lastsyn}
{{- end -}}

{{/* Both, in their order, whatever the mode: the items for `initContainers`, and those for `containers` (none where native). */}}
{{- define "lastsyn.initContainers" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- include "lastsyn.install" . }}
{{- if eq $values.mode "native" }}
{{ include "lastsyn.sidecar" . }}
{{- end }}
{{- end -}}

{{- define "lastsyn.containers" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- if eq $values.mode "container" }}
{{- include "lastsyn.sidecar" . }}
{{- end }}
{{- end -}}
