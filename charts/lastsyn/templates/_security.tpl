{{/*
What the agent's container may do. `bpf` and `compat` run programs in the kernel, `net-raw` opens a packet socket, `none` reads
counters. A capability is of use only to user 0: Kubernetes gives others none that they can use without a set-capability file,
which `allowPrivilegeEscalation: false` and `no_new_privs` rule out.
*/}}
{{- define "lastsyn.securityContext" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $capabilities := dict
  "bpf" (list "BPF" "NET_ADMIN") "compat" (list "BPF" "NET_ADMIN" "SYS_ADMIN") "net-raw" (list "NET_RAW") "none" list -}}
{{- if not (hasKey $capabilities $values.security) -}}
{{- fail (printf "lastsyn: security is `%s`, and has to be one of bpf, compat, net-raw, none" $values.security) -}}
{{- end -}}
{{- if and (not $values.hostUsers) (has $values.security (list "bpf" "compat")) -}}
{{- fail (printf "lastsyn: with hostUsers: false the kernel refuses what security: %s is for, as CAP_BPF counts only in the node's own user namespace: set security to net-raw, or to none" $values.security) -}}
{{- end -}}
{{- $added := get $capabilities $values.security -}}
{{- if $added }}
runAsUser: 0
runAsNonRoot: false
{{- else }}
{{- include "lastsyn.unprivileged" . }}
{{- end }}
{{- /* Kubernetes refuses it beside SYS_ADMIN. */}}
{{- if ne $values.security "compat" }}
allowPrivilegeEscalation: false
{{- end }}
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- with $added }}
  add: {{ toJson . }}
  {{- end }}
seccompProfile: {{ toJson $values.seccompProfile }}
{{- end -}}

{{- define "lastsyn.unprivileged" }}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
{{- end -}}
