{{/* The names of everything are the same in every release: an aggregated API and its webhooks are one to
a cluster, so a second release is refused by the names of the first. */}}

{{/* Labels of an object of a part: (list . "storage"). */}}
{{- define "muster.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: muster
app.kubernetes.io/part-of: muster
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* Labels by which the pods of a part are found; they never change. */}}
{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{/* An image's reference: (list . image defaultTag). The registry for all comes before one of its own. */}}
{{- define "muster.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := $root.Values.imageRegistry | default $image.registry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 2) }}{{ end }}
{{- end }}

{{/* Muster's own image: a registry of its own comes before that for all. */}}
{{- define "muster.own" -}}
{{- $image := .Values.image -}}
{{- with ($image.registry | default .Values.imageRegistry) }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The Secret with the certificate of the aggregated API, and that of the webhooks if it is not the
operator's own affair. */}}
{{- define "muster.storageSecret" -}}
{{- if eq .Values.certificates.from "secrets" }}{{ .Values.certificates.storageSecret }}{{ else }}muster-storage-tls{{ end }}
{{- end }}
{{- define "muster.webhookSecret" -}}
{{- if eq .Values.certificates.from "secrets" }}{{ .Values.certificates.webhookSecret }}{{ else }}muster-webhook-tls{{ end }}
{{- end }}

{{/* The groups and versions that `muster storage` serves. */}}
{{- define "muster.served" -}}
- {group: storage.sbomscanner.kubewarden.io, version: v1alpha1}
{{- if eq .Values.reports.backend "served" }}
- {group: wgpolicyk8s.io, version: v1beta1}
- {group: wgpolicyk8s.io, version: v1alpha2}
- {group: openreports.io, version: v1alpha1}
- {group: aquasecurity.github.io, version: v1alpha1}
{{- end }}
{{- end }}
