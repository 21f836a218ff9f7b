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
        }
    }
}

/// Prints a table; a ratio above 1 is in our favour.
pub(crate) fn print(ours: &[Measure], theirs: &[Measure]) {
    println_row(["what", "muster", "kube-apiserver + etcd", "ratio"]);
    for (our, their) in ours.iter().zip(theirs) {
        let ratio = match our.better {
            Better::More => our.value / their.value,
            Better::Less => their.value / our.value,
        };
        println_row([
            our.name,
            &format!("{:.2} {}", our.value, our.unit),
            &format!("{:.2} {}", their.value, their.unit),
            &format!("{ratio:.1}"),
        ]);
    }
}

#[expect(clippy::print_stdout, reason = "the result of the task")]
fn println_row(cells: [&str; 4]) {
    println!(
        "{:<24} {:>18} {:>22} {:>7}",
        cells[0], cells[1], cells[2], cells[3]
    );
}
