//! Work queues: messages that are handled at least once, by whichever worker has time. The crate
//! knows subjects, ids and bytes, and nothing of what the work is. Two implementations keep one
//! contract: [`EmbeddedQueue`] in a file of this machine, and [`NatsQueue`] on NATS JetStream.
//! Start reading at [`Queue`]; [`consume`] is the loop of a worker.

mod consume;
mod embedded;
mod nats;
mod queue;

pub use consume::{Backoff, Failure, Job, Verdict, Worker, consume, verdict};
pub use embedded::EmbeddedQueue;
pub use nats::{Authentication, NatsOptions, NatsQueue};
pub use queue::{Dead, Delivery, Depth, Published, Queue, QueueError, Settings};
