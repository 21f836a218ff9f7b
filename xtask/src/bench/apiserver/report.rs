//! What was measured, and how the two sides compare.

/// Whether more or less is better.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Better {
    /// A rate.
    More,
    /// A time or a size.
    Less,
}

/// One measurement.
pub(crate) struct Measure {
    name: &'static str,
    better: Better,
    value: f64,
    unit: &'static str,
    /// What the servers used meanwhile, in seconds of processor time.
    processor: Option<f64>,
}

impl Measure {
    /// A measurement, told as soon as it is made.
    pub(crate) fn new(name: &'static str, better: Better, value: f64, unit: &'static str) -> Self {
        eprintln!("  {name}: {value:.2} {unit}");
        Measure {
            name,
            better,
            value,
            unit,
            processor: None,
        }
    }

    pub(crate) fn with_processor(mut self, seconds: f64) -> Self {
        eprintln!("    {seconds:.2} s of the servers' processor time");
        self.processor = Some(seconds);
        self
    }
}

/// Prints a table; ratios above 1 are in our favour. The load shares the machine with the server,
/// so throughput is bounded by both; the processor time is the server's alone.
pub(crate) fn print(ours: &[Measure], theirs: &[Measure]) {
    println_row([
        "what",
        "muster",
        "kube-apiserver + etcd",
        "ratio",
        "cpu ratio",
    ]);
    for (our, their) in ours.iter().zip(theirs) {
        let ratio = match our.better {
            Better::More => our.value / their.value,
            Better::Less => their.value / our.value,
        };
        let processor = our.processor.zip(their.processor);
        println_row([
            our.name,
            &format!("{:.2} {}", our.value, our.unit),
            &format!("{:.2} {}", their.value, their.unit),
            &format!("{ratio:.1}"),
            &processor.map_or(String::new(), |(our, their)| format!("{:.1}", their / our)),
        ]);
    }
}

#[expect(clippy::print_stdout, reason = "the result of the task")]
fn println_row(cells: [&str; 5]) {
    println!(
        "{:<24} {:>18} {:>22} {:>7} {:>10}",
        cells[0], cells[1], cells[2], cells[3], cells[4]
    );
}
