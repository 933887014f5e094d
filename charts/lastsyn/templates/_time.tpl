{{/* A duration such as 20s, 2m or 1m30s, in seconds. */}}
{{- define "lastsyn.seconds" -}}
{{- if not (regexMatch "^([0-9]+m)?([0-9]+s)?$" .value | and .value) -}}
{{- fail (printf "lastsyn: %s is `%s`, and has to be in minutes and seconds, such as 20s or 1m30s" .key (toString .value)) -}}
{{- end -}}
{{- $minutes := regexFind "[0-9]+m" .value | trimSuffix "m" | default "0" | int -}}
{{- $seconds := regexFind "[0-9]+s" .value | trimSuffix "s" | default "0" | int -}}
{{- add (mul $minutes 60) $seconds -}}
{{- end -}}

{{/*
The grace period that a drain of `maxWait` needs: what is left of it afterwards, `stopReserve`, is for the server's own stop.
*/}}
{{- define "lastsyn.terminationGracePeriodSeconds" -}}
{{- $values := include "lastsyn.values" . | fromYaml -}}
{{- $bound := include "lastsyn.seconds" (dict "key" "maxWait" "value" $values.maxWait) | int -}}
{{- if eq $bound 0 -}}{{- fail "lastsyn: maxWait is 0s, with which no drain holds at all" -}}{{- end -}}
{{- $reserve := include "lastsyn.seconds" (dict "key" "stopReserve" "value" $values.stopReserve) | int -}}
{{- if lt $reserve 2 -}}{{- fail (printf "lastsyn: stopReserve is %s, and the server needs at least 2s: one is the hook's" $values.stopReserve) -}}{{- end -}}
{{- add $bound $reserve -}}
{{- end -}}
