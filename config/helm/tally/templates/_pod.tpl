{{/* The variables of a pod. Each list has one value, separated by commas. */}}
{{- define "tally.env" -}}
{{- $v := .root.Values -}}
{{- if ne .component "together" }}
- { name: TALLY_ROLES, value: {{ .component }} }
{{- end }}
{{- with $v.aws.region }}
- { name: AWS_REGION, value: {{ . | quote }} }
{{- end }}
- { name: TALLY_QUEUE_URL, value: {{ join "," $v.aws.queueUrls | quote }} }
{{- if $v.index.url }}
- { name: TALLY_INDEX_URL, value: {{ $v.index.url | quote }} }
{{- else }}
- { name: TALLY_INDEX_URL_FILE, value: {{ printf "/run/secrets/index/%s" $v.index.key | quote }} }
{{- end }}
{{- with $v.index.auth }}
- { name: TALLY_INDEX_AUTH, value: {{ . }} }
{{- end }}
{{- if $v.index.ca.existingSecret }}
- { name: TALLY_INDEX_CA_FILE, value: {{ printf "/run/secrets/ca/%s" $v.index.ca.key | quote }} }
{{- end }}
{{- if $v.autoscaling.enabled }}
- { name: TALLY_TARGET_LAG_S, value: {{ $v.autoscaling.targetLagSeconds | int64 | quote }} }
{{- end }}
{{- if and .http $v.login.issuer }}
# only what terminates TLS may reach it through the Service: see networkPolicy
- { name: TALLY_HTTP_ADDRESS, value: '0.0.0.0:8080' }
- { name: TALLY_PUBLIC_URL, value: {{ $v.login.url | quote }} }
- { name: TALLY_TRUSTED_PROXIES, value: {{ join "," $v.login.trustedProxies | quote }} }
- { name: TALLY_OIDC_ISSUER, value: {{ $v.login.issuer | quote }} }
- { name: TALLY_OIDC_CLIENT_ID, value: {{ $v.login.clientId | quote }} }
- { name: TALLY_OIDC_ALLOWED, value: {{ join "," $v.login.allowed | quote }} }
{{- if $v.login.existingSecret }}
- { name: TALLY_OIDC_CLIENT_SECRET_FILE, value: {{ printf "/run/secrets/login/%s" $v.login.key | quote }} }
{{- end }}
{{- with $v.login.adminEmails }}
- { name: TALLY_OIDC_ADMIN_EMAILS, value: {{ join "," . | quote }} }
{{- end }}
{{- with $v.login.adminClaim }}
- { name: TALLY_OIDC_ADMIN_CLAIM, value: {{ . | quote }} }
{{- end }}
{{- end }}
{{- range $name := keys $v.settings | sortAlpha }}
{{- $value := get $v.settings $name }}
{{- /* Helm reads every number as a float, and would print a large one as 5.24288e+06 */}}
- { name: {{ $name }}, value: {{ ternary (printf "%.0f" $value) (toString $value) (kindIs "float64" $value) | quote }} }
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The Secrets that a pod reads as files: name of the volume → its source. */}}
{{- define "tally.files" -}}
{{- $v := .root.Values -}}
{{- $files := list -}}
{{- if $v.index.existingSecret -}}
{{- $files = append $files (dict "name" "index" "path" "/run/secrets/index" "secret" $v.index.existingSecret) -}}
{{- end -}}
{{- if $v.index.ca.existingSecret -}}
{{- $files = append $files (dict "name" "ca" "path" "/run/secrets/ca" "secret" $v.index.ca.existingSecret) -}}
{{- end -}}
{{- if and .http $v.login.issuer -}}
{{- if $v.login.existingSecret -}}
{{- $files = append $files (dict "name" "login" "path" "/run/secrets/login" "secret" $v.login.existingSecret) -}}
{{- end -}}
{{- end -}}
{{- $files | toJson -}}
{{- end -}}
