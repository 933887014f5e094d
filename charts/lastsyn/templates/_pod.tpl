{{/*
The server's hook, for the `lifecycle` of every container that listens. Its own bound is a second longer than the agent's, so that
of a drain that reaches it the agent's verdict is told; the second is of `stopReserve`. With `config.mode: observe` there is none.
*/}}
{{- define "lastsyn.preStop" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- if eq (toString $values.config.mode) "observe" -}}
{}
{{- else -}}
{{- $bound := include "lastsyn.seconds" (dict "key" "maxWait" "value" $values.maxWait) | int -}}
{{- $command := list "/run/lastsyn/lastsyn" "drain" "--max-wait" (printf "%ds" (add1 $bound)) -}}
{{- if ne (int $values.port) 19480 -}}
{{- range $place := list (printf "127.0.0.1:%d" (int $values.port)) (printf "[::1]:%d" (int $values.port)) "unix:/run/lastsyn/hook.sock" -}}
{{- $command = concat $command (list "--agent" $place) -}}
{{- end -}}
{{- end -}}
preStop:
  exec:
    command: {{ toJson $command }}
{{- end -}}
{{- end -}}

{{/* Where the hook finds its program and the agent's socket, for the `volumeMounts` of every container that has the hook. */}}
{{- define "lastsyn.volumeMounts" -}}
- {name: lastsyn, mountPath: /run/lastsyn, readOnly: true}
{{- end -}}

{{/* The pod's `volumes`. The token is for the agent's container alone, and rotates. */}}
{{- define "lastsyn.volumes" -}}
- name: lastsyn
  emptyDir: {}
{{- if include "lastsyn.asksTheCluster" . }}
- name: lastsyn-token
  projected:
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
{{- end -}}

{{- define "lastsyn.tokenMount" -}}
{{- if include "lastsyn.asksTheCluster" . }}
- {name: lastsyn-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}
{{- end -}}

{{/* "true", or nothing where the agent is configured not to watch routing, or is told of it by the fence. */}}
{{- define "lastsyn.asksTheCluster" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- if and (ne (toJson (dig "routing" "enabled" true $values.config)) "false") (not (include "lastsyn.toldByTheFence" .)) -}}true{{- end -}}
{{- end -}}

{{/* The fields of the pod's `spec` that are not lists. */}}
{{- define "lastsyn.pod" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
terminationGracePeriodSeconds: {{ include "lastsyn.terminationGracePeriodSeconds" . }}
serviceAccountName: {{ include "lastsyn.serviceAccountName" . }}
automountServiceAccountToken: {{ $values.serviceAccount.automountToken }}
{{- if not $values.hostUsers }}
hostUsers: false
{{- end }}
{{- end -}}
