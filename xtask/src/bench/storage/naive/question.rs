//! What the naive layout is asked: the statements that compute reports from whole objects.

use crate::bench::storage::world::Place;

/// How containers and images are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench::storage) enum Join {
    /// By containment, as one would write it: every container is held against every image.
    Containment,
    /// By equality of what is left of an image's metadata, which the engine can hash.
    Equality,
}

/// How much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench::storage) enum Extent {
    /// With all findings.
    Whole,
    /// What a table shows.
    Counts,
}

/// The statement that gives `namespace, name` and the extent of reports, in the order of a list.
pub(super) fn statement(join: Join, which: &[Place], extent: Extent) -> String {
    let reference = "jsonb_build_object(
        'registry', c.container #> '{imageRef,registry}',
        'repository', c.container #> '{imageRef,repository}',
        'tag', c.container #> '{imageRef,tag}'
    )";
    let meets = match join {
        Join::Containment => {
            format!("v.object @> jsonb_build_object('imageMetadata', {reference})")
        }
        Join::Equality => format!(
            "(v.object -> 'imageMetadata') - '{{registryURI,platform,digest,indexDigest}}'::TEXT[] \
             = {reference}"
        ),
    };
    let which = which.iter();
    let which = which.map(|place| format!("('{}', '{}')", place.namespace, place.name));
    let which = which.collect::<Vec<_>>().join(", ");
    let which = format!("(w.namespace, w.name) IN ({which})");
    let shown = match extent {
        Extent::Counts => "jsonb_array_length(w.object #> '{spec,containers}'), s.summary::TEXT",
        Extent::Whole => {
            "(w.object || jsonb_build_object(
                'summary', s.summary,
                'status', jsonb_build_object('containerStatuses', q.statuses),
                'containers', q.containers
            ))::TEXT"
        }
    };
    let quoted = match extent {
        Extent::Counts => "",
        Extent::Whole => QUOTED,
    };
    format!(
        "WITH found AS MATERIALIZED (
            SELECT w.namespace, w.name, c.at, v.kind, v.namespace AS of_namespace, v.name AS of_name
            FROM naive w
            CROSS JOIN LATERAL jsonb_array_elements(w.object #> '{{spec,containers}}')
                WITH ORDINALITY c (container, at)
            JOIN naive v ON v.kind IN ('Image', 'VulnerabilityReport')
                AND v.namespace = c.container #>> '{{imageRef,namespace}}' AND {meets}
            WHERE w.kind = 'WorkloadScanReport' AND {which}
        ),
        {COUNTED}
        SELECT w.namespace, w.name, {shown}
        FROM naive w
        LEFT JOIN summed s ON s.namespace = w.namespace AND s.name = w.name
        {quoted}
        WHERE w.kind = 'WorkloadScanReport' AND {which}
        ORDER BY w.namespace, w.name"
    )
}

/// Findings of a container that are the same in package, version, vulnerability and suppression
/// count once, as the worst that is said of them.
const COUNTED: &str = "
counted AS (
    SELECT d.namespace, d.name, d.at,
        f ->> 'packageName', f ->> 'cve', f ->> 'installedVersion',
        COALESCE((f ->> 'suppressed')::BOOLEAN, FALSE) AS suppressed,
        min(COALESCE(array_position(
            '{CRITICAL,HIGH,MEDIUM,LOW}'::TEXT[], f ->> 'severity'
        ), 5)) AS severity
    FROM found d
    JOIN naive v ON v.kind = d.kind AND v.namespace = d.of_namespace AND v.name = d.of_name
    CROSS JOIN LATERAL jsonb_array_elements(v.object #> '{report,results}') r
    CROSS JOIN LATERAL jsonb_array_elements(r -> 'vulnerabilities') f
    WHERE d.kind = 'VulnerabilityReport'
    GROUP BY 1, 2, 3, 4, 5, 6, 7
),
summed AS (
    SELECT namespace, name, jsonb_build_object(
        'critical', count(*) FILTER (WHERE severity = 1 AND NOT suppressed),
        'high', count(*) FILTER (WHERE severity = 2 AND NOT suppressed),
        'medium', count(*) FILTER (WHERE severity = 3 AND NOT suppressed),
        'low', count(*) FILTER (WHERE severity = 4 AND NOT suppressed),
        'unknown', count(*) FILTER (WHERE severity = 5 AND NOT suppressed),
        'suppressed', count(*) FILTER (WHERE suppressed)
    ) AS summary
    FROM counted
    GROUP BY 1, 2
)";

/// The containers with the reports of their images, and how far these are scanned.
const QUOTED: &str = "
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(jsonb_build_object(
            'name', c.container -> 'name',
            'vulnerabilityReports', COALESCE(r.reports, '[]')
        ) ORDER BY c.at) AS containers,
        jsonb_agg(jsonb_build_object(
            'name', c.container -> 'name',
            'scanStatus', CASE
                WHEN r.images = 0 THEN 'WaitingForScan'
                WHEN r.images > r.scanned THEN 'ScanInProgress'
                ELSE 'ScanComplete' END
        ) ORDER BY c.at) AS statuses
    FROM jsonb_array_elements(w.object #> '{spec,containers}') WITH ORDINALITY c (container, at)
    CROSS JOIN LATERAL (
        SELECT
            count(*) FILTER (WHERE d.kind = 'Image') AS images,
            count(*) FILTER (WHERE d.kind = 'VulnerabilityReport') AS scanned,
            jsonb_agg(jsonb_build_object(
                'namespace', v.namespace, 'name', v.name,
                'imageMetadata', v.object -> 'imageMetadata', 'report', v.object -> 'report'
            ) ORDER BY v.namespace, v.name) FILTER (WHERE d.kind = 'VulnerabilityReport') AS reports
        FROM found d
        JOIN naive v ON v.kind = d.kind AND v.namespace = d.of_namespace AND v.name = d.of_name
        WHERE d.namespace = w.namespace AND d.name = w.name AND d.at = c.at
    ) r
) q";
