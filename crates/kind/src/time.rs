//! Time as Kubernetes writes it: RFC 3339 in whole seconds, UTC.

use jiff::Timestamp;

/// `2026-01-02T03:04:05Z`.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The present moment as Kubernetes writes it.
pub fn now() -> String {
    rfc3339(Timestamp::now())
}

/// How long ago `then` was, as kubectl's AGE column shows it: `5s`, `3m20s`, `2d3h`, `400d`.
pub fn ago(then: &str, now: Timestamp) -> Option<String> {
    let then: Timestamp = then.parse().ok()?;
    Some(human(now.as_second() - then.as_second()))
}

/// A number of seconds in at most two units, as kubectl shows it.
pub fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{small_unit}")
        }
    };
    match seconds {
        s if s < -1 => "<invalid>".into(),
        s if s < 0 => "0s".into(),
        s if s < 120 => format!("{s}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (3600, "60m"),
            (4 * 3600 + 120, "4h2m"),
            (10 * 3600, "10h"),
            (3 * 86400 + 3600, "3d1h"),
            (400 * 86400, "400d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
