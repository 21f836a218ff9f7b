{{/* The certificate of the aggregated API as JSON of base64: the one that the cluster has, or a new one.
It is made once for all templates, so that who serves with it and who believes it agree. */}}
{{- define "muster.certificate" -}}
{{- if not .Values.certificates.made -}}
{{- $name := "muster-storage" -}}
{{- $space := .Release.Namespace -}}
{{- $there := lookup "v1" "Secret" $space "muster-storage-tls" -}}
{{- $made := dict -}}
{{- if and $there $there.data (index $there.data "ca.crt") -}}
{{- $made = dict "ca" (index $there.data "ca.crt") "certificate" (index $there.data "tls.crt") "key" (index $there.data "tls.key") -}}
{{- else -}}
{{- $days := int .Values.certificates.days -}}
{{- $authority := genCA "muster-storage authority" $days -}}
{{- /* `localhost` is for whoever comes through `kubectl port-forward`. */ -}}
{{- $names := list (printf "%s.%s.svc" $name $space) (printf "%s.%s.svc.cluster.local" $name $space) "localhost" -}}
{{- $pair := genSignedCert (first $names) (list "127.0.0.1") $names $days $authority -}}
{{- $made = dict "ca" (b64enc $authority.Cert) "certificate" (b64enc $pair.Cert) "key" (b64enc $pair.Key) -}}
{{- end -}}
{{- $_ := set .Values.certificates "made" $made -}}
{{- end -}}
{{- toJson .Values.certificates.made -}}
{{- end }}
