{{/* What values contradict each other, all at once, before anything is made. */}}
{{- define "tally.checks" -}}
{{- $wrong := list -}}
{{- $v := .Values -}}
{{- if not $v.aws.queueUrls -}}
{{- $wrong = append $wrong "aws.queueUrls: name the bucket queue" -}}
{{- end -}}
{{- if not (or $v.index.url $v.index.existingSecret) -}}
{{- $wrong = append $wrong "index.existingSecret: name a Secret with the URL of OpenSearch, or set index.url to a URL without a password" -}}
{{- end -}}
{{- if and $v.index.url $v.index.existingSecret -}}
{{- $wrong = append $wrong "index.url and index.existingSecret: set one of the two" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (ne $v.roles "split") -}}
{{- $wrong = append $wrong "autoscaling.enabled: needs roles: split, since reindex and http must not be scaled to 0" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (not $v.aws.region) -}}
{{- $wrong = append $wrong "autoscaling.enabled: needs aws.region" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int64 $v.autoscaling.min) (int64 $v.autoscaling.max)) -}}
{{- $wrong = append $wrong "autoscaling.min: is greater than autoscaling.max" -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (or $v.serviceAccount.roleArn $v.serviceAccount.annotations) -}}
{{- $wrong = append $wrong "serviceAccount.create: must be true with roleArn or annotations, which belong to the account that the chart makes" -}}
{{- end -}}
{{- if $v.login.issuer -}}
{{- range $name := list "url" "allowed" "trustedProxies" -}}
{{- if not (get $v.login $name) -}}
{{- $wrong = append $wrong (printf "login.%s: must be set with login.issuer" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.httpFrom) -}}
{{- $wrong = append $wrong "networkPolicy.httpFrom: name the peers that reach the control plane, such as the namespace of the Ingress controller" -}}
{{- end -}}
{{- else if or $v.ingress.enabled $v.gateway.enabled -}}
{{- $wrong = append $wrong "login.issuer: must be set with ingress.enabled or gateway.enabled, because the control plane admits everyone who reaches it otherwise" -}}
{{- end -}}
{{- if and $v.gateway.enabled (not $v.gateway.parentRefs) -}}
{{- $wrong = append $wrong "gateway.parentRefs: name the Gateway" -}}
{{- end -}}
{{- range $name := keys $v.settings | sortAlpha -}}
{{- if has $name (list "TALLY_ROLES" "AWS_REGION" "TALLY_QUEUE_URL" "TALLY_INDEX_URL" "TALLY_INDEX_URL_FILE" "TALLY_INDEX_AUTH" "TALLY_INDEX_CA_FILE" "TALLY_TARGET_LAG_S" "TALLY_HTTP_ADDRESS" "TALLY_PUBLIC_URL" "TALLY_TRUSTED_PROXIES" "TALLY_OIDC_ISSUER" "TALLY_OIDC_CLIENT_ID" "TALLY_OIDC_CLIENT_SECRET" "TALLY_OIDC_CLIENT_SECRET_FILE" "TALLY_OIDC_ALLOWED" "TALLY_OIDC_ADMIN_EMAILS" "TALLY_OIDC_ADMIN_CLAIM" "TALLY_HEALTH_ADDRESS" "TALLY_SHUTDOWN_TIMEOUT_MS") -}}
{{- $wrong = append $wrong (printf "settings.%s: other values of the chart set this variable" $name) -}}
{{- else if has $name (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" "TALLY_API_KEY") -}}
{{- $wrong = append $wrong (printf "settings.%s: put it into a Secret, and name that in extraEnvFrom" $name) -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "the values do not fit together:\n\n  %s\n" (join "\n  " $wrong)) -}}
{{- end -}}
{{- end -}}
