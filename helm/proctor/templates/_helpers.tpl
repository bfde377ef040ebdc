{{/* Names and labels. */}}
{{- define "proctor.labels" -}}
app.kubernetes.io/name: proctor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* proctor.selector (dict "root" $ "component" "operator") */}}
{{- define "proctor.selector" -}}
app.kubernetes.io/name: proctor
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* proctor.image (dict "root" $ "image" .Values.images.operator) */}}
{{- define "proctor.image" -}}
{{- $registry := .root.Values.images.registry -}}
{{- $name := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "proctor.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "proctor.masterSecret" -}}
{{ .Values.masterKey.existingSecret | default "proctor-master" }}
{{- end }}

{{/* The pods of the chart pass Pod Security `restricted`. */}}
{{- define "proctor.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "proctor.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "proctor.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The namespaces whose pods the network policies speak of. */}}
{{- define "proctor.runNamespaceSelector" -}}
{{- if .Values.clusterWide -}}
{}
{{- else -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: In
  values:
  {{- range .Values.runNamespaces }}
  - {{ .name }}
  {{- end }}
{{- end -}}
{{- end }}

{{- define "proctor.storeHost" -}}
{{- if eq .Values.clickhouse.kind "Embedded" -}}
proctor-clickhouse.{{ .Release.Namespace }}.svc
{{- else -}}
{{ required "clickhouse.host: say where your ClickHouse is, or leave clickhouse.kind at Embedded" .Values.clickhouse.host }}
{{- end -}}
{{- end }}
