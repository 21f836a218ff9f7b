//! Work queues: messages that are handled at least once, by whichever worker has time. The crate
//! knows subjects, ids and bytes, and nothing of what the work is. Two implementations keep one
//! contract: [`EmbeddedQueue`] in a file of this machine, and [`NatsQueue`] on NATS JetStream.
//! Start reading at [`Queue`]; [`consume`] is the loop of a worker. Beside the queues, replicas of
//! a process tell each other over NATS how far they have come: [`nudge`].

mod consume;
mod embedded;
mod nats;
mod nudge;
mod queue;

pub use consume::{Backoff, Failure, Job, Verdict, Worker, consume, verdict};
pub use embedded::EmbeddedQueue;
pub use nats::{Authentication, NatsOptions, NatsQueue};
pub use nudge::nudge;
pub use queue::{Dead, Delivery, Depth, Published, Queue, QueueError, Settings};
