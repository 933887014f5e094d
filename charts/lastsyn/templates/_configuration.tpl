{{/*
The agent's configuration as its environment: every key of the tree `config` is a variable of its own, so that no ConfigMap
is needed beside the workload.
*/}}
{{- define "lastsyn.env" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- range $name, $path := dict
  "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid"
  "POD_IPS" "status.podIPs" "NODE_NAME" "spec.nodeName" "HOST_IPS" "status.hostIPs" }}
- name: {{ $name }}
  valueFrom: {fieldRef: {fieldPath: {{ $path }}}}
{{- end }}
- {name: LASTSYN_DRAIN_MAX_WAIT, value: {{ $values.maxWait | quote }}}
- {name: LASTSYN_DRAIN_STOP_RESERVE, value: {{ $values.stopReserve | quote }}}
- {name: LASTSYN_SERVER_ADDRESS, value: {{ printf "[::]:%d" (int $values.port) | quote }}}
{{- $own := dict
  "drain.maxWait" "maxWait" "drain.stopReserve" "stopReserve" "server.address" "port" "server.socket" ""
  "pod.name" "" "pod.namespace" "" "pod.uid" "" "pod.ips" "" "pod.nodeName" "" "pod.hostIps" ""
  "routing.source" "fence.source" "fence.address" "fence.port" }}
{{- with include "lastsyn.fenceUrl" . }}
- {name: LASTSYN_ROUTING_FENCE, value: {{ . | quote }}}
{{- $own = set $own "routing.fence" "fence.url" }}
{{- end }}
{{- if include "lastsyn.toldByTheFence" . }}
- {name: LASTSYN_ROUTING_SOURCE, value: fence}
{{- end }}
{{- include "lastsyn.variables" (dict "tree" $values.config "path" list "own" $own) }}
{{- end -}}

{{/* The variables of a part of the tree, in the order of their names. */}}
{{- define "lastsyn.variables" -}}
{{- $own := .own -}}
{{- $path := .path -}}
{{- range $name, $value := .tree }}
{{- $place := append $path $name }}
{{- $key := join "." $place }}
{{- /* What is a mapping, and one value for the agent. */}}
{{- $whole := has $key (list "readiness.upstream" "proxy.http.announce" "proxy.http.failReadiness" "proxy.http.takeBack") }}
{{- if and (kindIs "map" $value) (not $whole) }}
{{- include "lastsyn.variables" (dict "tree" $value "path" $place "own" $own) }}
{{- else if hasKey $own $key }}
{{- with get $own $key }}
{{- fail (printf "lastsyn: config.%s is what `%s` says, for the hook and the pod need the same value: set that" $key .) }}
{{- end }}
{{- fail (printf "lastsyn: config.%s is set by the chart itself" $key) }}
{{- else }}
{{- /* The name that `lastsyn run --help` shows: every word of the key, in capitals. */}}
{{- $variable := printf "LASTSYN_%s" (regexReplaceAll "([A-Z])" $key "_${1}" | replace "." "_" | upper) }}
- {name: {{ $variable }}, value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}}
{{- end }}
{{- end }}
{{- end -}}
