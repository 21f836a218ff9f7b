{{/* What the pods of all three roles share. Each is called with (list . "storage"). */}}

{{- define "muster.meta" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $values := index $root.Values $role -}}
{{- $annotations := dict -}}
{{- /* CA certificates are read once: others are another pod. */ -}}
{{- with $root.Values.authorities.pem -}}
{{- $_ := set $annotations "muster/authorities" (sha256sum .) -}}
{{- end -}}
labels:
  {{- include "muster.labels" . | nindent 2 }}
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge $annotations ($values.podAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Image pull Secrets of every pod. */}}
{{- define "muster.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where pods run, of the values of a part. */}}
{{- define "muster.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "muster.pod" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $values := index $root.Values $role -}}
serviceAccountName: muster-{{ $role }}
# Variables that Kubernetes would derive from Services are not settings.
enableServiceLinks: false
securityContext:
  {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- include "muster.pullSecrets" $root }}
{{- include "muster.placement" $values }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml . | nindent 4 }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- include "muster.selector" (list $root $role) | nindent 8 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "muster.container" -}}
{{- $root := index . 0 -}}
{{- $values := index $root.Values (index . 1) -}}
name: {{ index . 1 }}
image: {{ include "muster.own" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
{{- end }}

{{/* Environment of every role. */}}
{{- define "muster.environment" -}}
{{- $root := index . 0 -}}
{{- $values := index $root.Values (index . 1) -}}
- {name: MUSTER_LOG, value: {{ $root.Values.log | quote }}}
- {name: HOME, value: /tmp}
{{- with $root.Values.traces.endpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
- {name: OTEL_SERVICE_NAME, value: muster-{{ index $ 1 }}}
{{- end }}
{{- if include "muster.authorities" $root }}
# Authorities of the image, and those of yours.
- {name: SSL_CERT_FILE, value: /etc/ssl/certs/ca-certificates.crt}
- {name: SSL_CERT_DIR, value: /etc/muster/authorities}
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The ConfigMap with further authorities, if there are any. */}}
{{- define "muster.authorities" -}}
{{- if .Values.authorities.configMap }}{{ .Values.authorities.configMap }}
{{- else if .Values.authorities.pem }}muster-authorities{{ end }}
{{- end }}

{{- define "muster.authoritiesVolume" -}}
{{- with include "muster.authorities" . }}
- name: authorities
  configMap:
    name: {{ . }}
    items: [{key: {{ if $.Values.authorities.configMap }}{{ $.Values.authorities.key }}{{ else }}ca.crt{{ end }}, path: ca.crt}]
{{- end }}
{{- end }}

{{- define "muster.authoritiesMount" -}}
{{- if include "muster.authorities" . }}
- {name: authorities, mountPath: /etc/muster/authorities, readOnly: true}
{{- end }}
{{- end }}

{{/* Where NATS is: arguments, volumes and mounts. */}}
{{- define "muster.natsArguments" -}}
{{- $nats := .Values.nats -}}
{{- if $nats.bundled.enabled -}}
- --nats=nats://muster-nats.{{ .Release.Namespace }}.svc:4222
{{- else }}
{{- range $nats.external.servers }}
- --nats={{ . }}
{{- end }}
{{- if $nats.external.credentialsSecret.name }}
- --nats-credentials=/etc/muster/nats/credentials
{{- end }}
{{- if $nats.external.authoritySecret.name }}
- --nats-ca=/etc/muster/nats-authority/ca.crt
{{- end }}
{{- end }}
{{- end }}

{{- define "muster.natsVolumes" -}}
{{- $nats := .Values.nats -}}
{{- if not $nats.bundled.enabled }}
{{- with $nats.external.credentialsSecret }}
{{- if .name }}
- name: nats
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: credentials}]}
{{- end }}
{{- end }}
{{- with $nats.external.authoritySecret }}
{{- if .name }}
- name: nats-authority
  secret: {secretName: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "muster.natsMounts" -}}
{{- $nats := .Values.nats -}}
{{- if not $nats.bundled.enabled }}
{{- if $nats.external.credentialsSecret.name }}
- {name: nats, mountPath: /etc/muster/nats, readOnly: true}
{{- end }}
{{- if $nats.external.authoritySecret.name }}
- {name: nats-authority, mountPath: /etc/muster/nats-authority, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{/* Probes of the roles that tell how they are on a port of their own. */}}
{{- define "muster.probes" -}}
startupProbe: {httpGet: {path: /healthz, port: health}, periodSeconds: 2, failureThreshold: 60}
livenessProbe: {httpGet: {path: /healthz, port: health}, periodSeconds: 20, timeoutSeconds: 5}
readinessProbe: {httpGet: {path: /readyz, port: health}, periodSeconds: 10, timeoutSeconds: 10}
{{- end }}
