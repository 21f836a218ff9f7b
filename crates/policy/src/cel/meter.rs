//! How much an evaluation may do. CEL always ends, but four nested loops over a hundred containers
//! end after centuries, and twenty doublings of a text fill a machine. So every step is counted before
//! it is done, and every byte before it is taken; what was counted is never given back, hence an
//! evaluation holds no more than it may take in all.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The most steps: about what an API server grants an expression, and less than a second here.
pub(super) const STEPS: u64 = 10_000_000;
/// The most memory that an evaluation may take, in bytes.
pub(super) const MEMORY: u64 = 64 * 1024 * 1024;
/// How many steps are taken between two looks at the clock.
const GLANCE: u64 = 4096;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The expression has no value here. `||` and `&&` may do without it.
    Failed(String),
    /// It took more steps than it may.
    Expensive,
    /// It took more memory than it may.
    Large,
    /// It took more time than it may.
    Late(Duration),
}

impl Stop {
    /// What happened, to be put behind the name of what was evaluated.
    pub(super) fn told(&self) -> String {
        match self {
            Stop::Failed(why) => why.clone(),
            Stop::Expensive => "is too expensive".into(),
            Stop::Large => format!("needs more than {} MiB", MEMORY >> 20),
            Stop::Late(time) => format!("took longer than {time:?}"),
        }
    }
}

/// A failure with its reason.
pub(super) fn failed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(why.into()))
}

/// Counts for one evaluation.
#[derive(Debug)]
pub(super) struct Meter {
    steps: Cell<u64>,
    glance: Cell<u64>,
    memory: Cell<u64>,
    time: Duration,
    deadline: Option<Instant>,
}

impl Meter {
    pub(super) fn new(time: Duration) -> Self {
        Meter {
            steps: Cell::new(STEPS),
            glance: Cell::new(STEPS - GLANCE),
            memory: Cell::new(MEMORY),
            time,
            deadline: Instant::now().checked_add(time),
        }
    }

    /// Counts work before it is done.
    pub(super) fn work(&self, steps: usize) -> Result<(), Stop> {
        let Some(left) = self.steps.get().checked_sub(steps as u64) else {
            self.steps.set(0);
            return Err(Stop::Expensive);
        };
        self.steps.set(left);
        if left < self.glance.get() {
            self.glance.set(left.saturating_sub(GLANCE));
            if self.deadline.is_some_and(|end| Instant::now() > end) {
                self.steps.set(0);
                return Err(Stop::Late(self.time));
            }
        }
        Ok(())
    }

    /// Counts memory before it is taken, and the work of filling it.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Stop> {
        let Some(left) = self.memory.get().checked_sub(bytes as u64) else {
            self.memory.set(0);
            return Err(Stop::Large);
        };
        self.memory.set(left);
        self.read(bytes)
    }

    /// Counts the work of reading a text once.
    pub(super) fn read(&self, bytes: usize) -> Result<(), Stop> {
        self.work(bytes / 16 + 1)
    }
}
