{{- define "tally.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of everything; 40 characters leave room for what is added. */}}
{{- define "tally.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "tally.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tally.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tally.serviceAccount" -}}
{{- default (ternary (include "tally.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "tally.selector" -}}
app.kubernetes.io/name: {{ include "tally.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tally.labels" -}}
{{ include "tally.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The Deployments by their roles, as JSON: component, name, roles. */}}
{{- define "tally.workloads" -}}
{{- $name := include "tally.fullname" . -}}
{{- if eq .Values.roles "together" -}}
{{- list (dict "component" "together" "name" $name "http" true) | toJson -}}
{{- else -}}
{{- $all := list -}}
{{- range $component := list "ingest" "reindex" "http" -}}
{{- $all = append $all (dict "component" $component "name" (printf "%s-%s" $name $component) "http" (eq $component "http")) -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}
{{- end -}}

{{/* The Deployment with the control plane, in which commands are run. */}}
{{- define "tally.control" -}}
{{- include "tally.fullname" . }}{{ if eq .Values.roles "split" }}-http{{ end -}}
{{- end -}}

{{/* The host of login.url. */}}
{{- define "tally.host" -}}
{{- (urlParse .Values.login.url).host | splitList ":" | first -}}
{{- end -}}
