//! What was measured, and the table it is told in.

use std::time::Duration;

/// How long something took, again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The least time that so many of a hundred took no longer than.
    fn percentile(&self, percent: usize) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }
}

/// What the other side did in the same time.
#[derive(Clone, Debug)]
pub(super) enum Naive {
    /// It answered.
    Took(Times),
    /// It was stopped after so long.
    Stopped(Duration),
}

/// What a time shall stay under.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim {
    /// At the median.
    Median(Duration),
    /// At the 99th percentile.
    Almost(Duration),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    what: String,
    ours: Times,
    aim: Option<Aim>,
    naive: Option<Naive>,
}

impl Figure {
    /// A figure, told as soon as it is made.
    pub(super) fn new(what: impl Into<String>, ours: Times, aim: Option<Aim>) -> Self {
        let figure = Figure {
            what: what.into(),
            ours,
            aim,
            naive: None,
        };
        let [what, median, most, ..] = figure.cells();
        eprintln!("  {what}: {median}, 99 of 100 within {most}");
        figure
    }

    /// The same under another name, to be held beside something else.
    pub(super) fn called(mut self, what: &str) -> Self {
        self.what = what.into();
        self.aim = None;
        self
    }

    /// With what the naive layout took.
    pub(super) fn beside(mut self, naive: Naive) -> Self {
        self.naive = Some(naive);
        let [what, .., naive, ratio] = self.cells();
        eprintln!("  {what}: naive {naive}, ratio {ratio}");
        self
    }

    fn cells(&self) -> [String; 7] {
        let (median, most) = (self.ours.percentile(50), self.ours.percentile(99));
        let (aim, verdict) = match self.aim {
            None => (String::new(), ""),
            Some(Aim::Median(aim)) => (format!("p50 < {}", text(Some(aim))), verdict(median, aim)),
            Some(Aim::Almost(aim)) => (format!("p99 < {}", text(Some(aim))), verdict(most, aim)),
        };
        let (naive, ratio) = match &self.naive {
            None => (String::new(), String::new()),
            Some(Naive::Took(times)) => {
                let naive = times.percentile(50);
                (text(naive), over(naive, median, ""))
            }
            Some(Naive::Stopped(limit)) => {
                let limit = Some(*limit);
                (format!("> {}", text(limit)), over(limit, median, "> "))
            }
        };
        [
            self.what.clone(),
            text(median),
            text(most),
            aim,
            verdict.into(),
            naive,
            ratio,
        ]
    }
}

fn verdict(time: Option<Duration>, aim: Duration) -> &'static str {
    match time.is_some_and(|time| time < aim) {
        true => "met",
        false => "missed",
    }
}

fn over(naive: Option<Duration>, ours: Option<Duration>, sign: &str) -> String {
    let ratio = naive.zip(ours).map(|(naive, ours)| {
        let ratio = naive.as_secs_f64() / ours.as_secs_f64();
        match ratio {
            ..10.0 => format!("{sign}{ratio:.1}"),
            _ => format!("{sign}{ratio:.0}"),
        }
    });
    ratio.unwrap_or_default()
}

fn text(time: Option<Duration>) -> String {
    let Some(time) = time else {
        return String::new();
    };
    let millis = time.as_secs_f64() * 1e3;
    match millis {
        ..10.0 => format!("{millis:.2} ms"),
        ..100.0 => format!("{millis:.1} ms"),
        ..10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Prints figures; a ratio is naive over ours at the median.
pub(super) fn print(figures: &[Figure]) {
    row(["what", "p50", "p99", "aim", "", "naive p50", "ratio"].map(String::from));
    for figure in figures {
        row(figure.cells());
    }
}

#[expect(clippy::print_stdout, reason = "the result of the task")]
fn row(cells: [String; 7]) {
    let [what, median, most, aim, verdict, naive, ratio] = cells;
    println!("{what:<46} {median:>9} {most:>9} {aim:>13} {verdict:<6} {naive:>11} {ratio:>8}");
}

/// Prints something that was counted.
#[expect(clippy::print_stdout, reason = "the result of the task")]
pub(super) fn line(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(values: impl IntoIterator<Item = u64>) -> Times {
        Times(values.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        for (times, percent, expected) in [
            (millis([]), 50, None),
            (millis([7]), 99, Some(7)),
            (millis([3, 1, 2]), 50, Some(2)),
            (millis((1..=200).rev()), 50, Some(100)),
            (millis(1..=200), 99, Some(198)),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(times.percentile(percent), expected, "{times:?}");
        }
    }

    #[test]
    fn a_figure_says_whether_its_aim_was_met_and_what_it_is_beside_the_other() {
        let aim = Duration::from_millis(5);
        for (times, aim, verdict) in [
            (millis([4, 4, 4]), Aim::Almost(aim), "met"),
            (millis([4, 4, 5]), Aim::Almost(aim), "missed"),
            (millis([4, 4, 5]), Aim::Median(aim), "met"),
            (millis([4, 5, 5]), Aim::Median(aim), "missed"),
        ] {
            assert_eq!(Figure::new("x", times, Some(aim)).cells()[4], verdict);
        }
        let met = Figure::new("x", millis([4, 4]), None);
        let beside = met.clone().beside(Naive::Took(millis([400])));
        assert_eq!(beside.cells()[5..], ["400 ms", "100"]);
        let beside = met.beside(Naive::Stopped(Duration::from_secs(60)));
        assert_eq!(beside.cells()[5..], ["> 60.0 s", "> 15000"]);
    }
}
