{{- define "hubcloud.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "hubcloud.labels" -}}
app.kubernetes.io/name: hubcloud
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The labels that select the pods of a component: a dict of context and component. */ -}}
{{- define "hubcloud.selector" -}}
app.kubernetes.io/name: hubcloud
app.kubernetes.io/instance: {{ .context.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* Whether the chart runs nats-servers, "" if not. */ -}}
{{- define "hubcloud.ownBroker" -}}
{{ if and (eq .Values.mode "cluster") (not .Values.broker.urls) }}yes{{ end }}
{{- end }}

{{- /* Whether the service reaches its broker over the network, "" if it embeds it. */ -}}
{{- define "hubcloud.remoteBroker" -}}
{{ if or (eq .Values.mode "cluster") .Values.broker.urls }}yes{{ end }}
{{- end }}

{{- define "hubcloud.natsUrl" -}}
{{- if .Values.broker.urls -}}
{{ join "," .Values.broker.urls }}
{{- else -}}
{{- $nats := printf "%s-nats" (include "hubcloud.name" .) -}}
{{ range $i := until 3 }}{{ if $i }},{{ end }}tls://{{ $nats }}-{{ $i }}.{{ $nats }}:4222{{ end }}
{{- end }}
{{- end }}

{{- define "hubcloud.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "hubcloud.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "hubcloud.imagePullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The settings of every process of the service. */ -}}
{{- define "hubcloud.envFrom" -}}
- configMapRef: {name: {{ include "hubcloud.name" . }}}
{{- with .Values.settingsSecret }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- with .Values.postgres.secret }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- end }}
