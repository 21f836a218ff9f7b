//! The queue on NATS JetStream: a work-queue stream, from which a message goes when it is
//! finished, and a second stream for the dead. There is one pull consumer for each subject, and
//! nothing is prefetched beyond what was asked for.
//!
//! The hash of a message's id is the last word of its NATS subject, and the stream takes one
//! message per subject: so an id that is pending is refused however long ago it came, which the
//! server's own window of ids does not promise.

pub(crate) mod connect;

use crate::queue::{
    Dead, Delivery, Depth, Published, Queue, QueueError, Receipt, Settings, check, check_subject,
    one_line, unfinished,
};
use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, AckKind, Context, Message};
use async_trait::async_trait;
use bytes::Bytes;
pub use connect::{Authentication, NatsOptions};
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::time::timeout;

const ID: &str = "Muster-Id";
const REASON: &str = "Muster-Reason";
const TRIES: &str = "Muster-Tries";
/// How long one exchange with the server may take beside the waiting that was asked for.
const EXCHANGE: Duration = Duration::from_secs(10);
/// How many messages of a subject all workers together may have.
const RUNNING: i64 = 20_000;

type Pull = Consumer<pull::Config>;

/// A queue on NATS JetStream.
#[derive(Debug)]
pub struct NatsQueue {
    context: Context,
    options: NatsOptions,
    settings: Settings,
    /// The consumers that are known to be there.
    consumers: Mutex<HashMap<String, Pull>>,
}

impl NatsQueue {
    /// Connects, and makes the streams or brings them up to date. The connection is kept: when it
    /// breaks it is made again, for ever.
    pub async fn connect(
        options: NatsOptions,
        settings: Settings,
    ) -> Result<NatsQueue, QueueError> {
        let client = connect::connect(&options, |wanted| wanted).await?;
        let queue = NatsQueue {
            context: jetstream::new(client),
            options,
            settings,
            consumers: Mutex::default(),
        };
        queue.ensure_streams().await?;
        Ok(queue)
    }

    fn work(&self) -> String {
        format!("{}-work", self.options.prefix)
    }

    fn graves(&self) -> String {
        format!("{}-dead", self.options.prefix)
    }

    /// The NATS subject of a message, or of all messages where there is no id.
    fn address(&self, realm: &str, subject: &str, id: Option<&str>) -> String {
        let last = id.map_or("*".into(), hash);
        format!("{}.{realm}.{subject}.{last}", self.options.prefix)
    }

    async fn ensure_streams(&self) -> Result<(), QueueError> {
        let work = stream::Config {
            name: self.work(),
            subjects: vec![format!("{}.work.>", self.options.prefix)],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            num_replicas: self.options.replicas.max(1),
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            max_messages_per_subject: 1,
            duplicate_window: self.settings.window,
            ..stream::Config::default()
        };
        let graves = stream::Config {
            name: self.graves(),
            subjects: vec![format!("{}.dead.>", self.options.prefix)],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: self.options.replicas.max(1),
            discard: DiscardPolicy::Old,
            max_messages_per_subject: 1,
            max_messages: i64::try_from(self.settings.dead).unwrap_or(i64::MAX).max(1),
            ..stream::Config::default()
        };
        for config in [work, graves] {
            let attempt = format!("preparing the stream {}", config.name);
            let made = self.context.create_or_update_stream(config);
            self.within(&attempt, EXCHANGE, made).await?;
        }
        Ok(())
    }

    /// The consumer of a subject, made if need be.
    async fn consumer(&self, subject: &str) -> Result<Pull, QueueError> {
        let mut known = self.consumers.lock().await;
        if let Some(consumer) = known.get(subject) {
            return Ok(consumer.clone());
        }
        let attempt = format!("preparing the consumer of {subject}");
        self.ensure_streams().await?;
        let config = pull::Config {
            durable_name: Some(format!("worker-{}", subject.replace('.', "_"))),
            filter_subject: self.address("work", subject, None),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.settings.lease,
            // Tries are counted by us, because a server that counts drops silently.
            max_deliver: -1,
            max_ack_pending: RUNNING,
            ..pull::Config::default()
        };
        let made = self.context.create_consumer_on_stream(config, self.work());
        let consumer: Pull = self.within(&attempt, EXCHANGE, made).await?;
        known.insert(subject.into(), consumer.clone());
        Ok(consumer)
    }

    /// Forgets a consumer, so that it is looked for again: the server may have lost it.
    async fn forget(&self, subject: &str) {
        self.consumers.lock().await.remove(subject);
    }

    async fn within<T, E: std::fmt::Display>(
        &self,
        attempt: &str,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, QueueError> {
        match timeout(limit, work).await {
            Ok(outcome) => outcome.map_err(|error| QueueError::unavailable(attempt, error)),
            Err(_) => Err(QueueError::unavailable(
                attempt,
                format!("no answer within {limit:?}"),
            )),
        }
    }

    async fn send(
        &self,
        address: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<bool, PublishError> {
        let sent = self
            .context
            .publish_with_headers(address, headers, payload)
            .await?;
        Ok(sent.await?.duplicate)
    }

    /// What is at hand, and else the first that comes.
    async fn fetch(
        &self,
        consumer: &Pull,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Message>, async_nats::Error> {
        let mut batch = consumer.fetch().max_messages(limit).messages().await?;
        let mut messages = Vec::new();
        while let Some(message) = batch.next().await {
            messages.push(message?);
        }
        if messages.is_empty() && !wait.is_zero() {
            let mut batch = consumer
                .batch()
                .max_messages(1)
                .expires(wait)
                .messages()
                .await?;
            while let Some(message) = batch.next().await {
                messages.push(message?);
            }
        }
        Ok(messages)
    }

    /// A message as a delivery; none if its tries are used up, and then it is laid aside.
    async fn delivery(
        &self,
        subject: &str,
        message: Message,
    ) -> Result<Option<Delivery>, QueueError> {
        let attempt = match message.info() {
            Ok(info) => u32::try_from(info.delivered).unwrap_or(u32::MAX).max(1),
            Err(error) => return Err(QueueError::unavailable("reading a message", error)),
        };
        let headers = message.headers.as_ref();
        let id = headers
            .and_then(|headers| headers.get(ID))
            .map(|id| id.as_str().to_string());
        let tries = self.settings.tries.max(1);
        let delivery = Delivery {
            subject: subject.into(),
            id: id.unwrap_or_else(|| message.subject.to_string()),
            payload: message.payload.clone(),
            attempt: attempt.min(tries),
            last: attempt >= tries,
            receipt: Receipt::Nats(Arc::new(message)),
        };
        if attempt > tries {
            self.bury(&delivery, &unfinished(tries, None)).await?;
            return Ok(None);
        }
        Ok(Some(delivery))
    }

    /// Writes a message to the stream of the dead and then takes it from the queue: killed in
    /// between, it is written again to the same place.
    async fn bury(&self, delivery: &Delivery, reason: &str) -> Result<(), QueueError> {
        let attempt = format!("laying {:?} of {} aside", delivery.id, delivery.subject);
        let mut headers = HeaderMap::new();
        headers.insert(ID, delivery.id.as_str());
        headers.insert(REASON, one_line(reason).as_str());
        headers.insert(TRIES, delivery.attempt.to_string().as_str());
        let address = self.address("dead", &delivery.subject, Some(&delivery.id));
        let sent = self.send(address, headers, delivery.payload.clone());
        self.within(&attempt, EXCHANGE, sent).await?;
        self.say(delivery, AckKind::Ack).await
    }

    /// Says what became of a message, and hears that the server knows.
    async fn say(&self, delivery: &Delivery, kind: AckKind) -> Result<(), QueueError> {
        let attempt = format!("settling {:?} of {}", delivery.id, delivery.subject);
        let Receipt::Nats(message) = &delivery.receipt else {
            return Err(QueueError::lost(delivery));
        };
        self.within(&attempt, EXCHANGE, message.double_ack_with(kind))
            .await
    }

    async fn stream(&self, name: String) -> Result<Stream, QueueError> {
        let attempt = format!("reading the stream {name}");
        self.within(&attempt, EXCHANGE, self.context.get_stream(name))
            .await
    }
}

/// Half of a SHA-256: short, and nobody can make two ids meet.
fn hash(id: &str) -> String {
    let hash = Sha256::digest(id.as_bytes());
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether the stream has a message of that id already.
fn is_pending(error: &PublishError) -> bool {
    error.kind() == PublishErrorKind::Other
        && error.to_string().contains("maximum messages per subject")
}

#[async_trait]
impl Queue for NatsQueue {
    async fn publish(
        &self,
        subject: &str,
        id: &str,
        payload: Bytes,
    ) -> Result<Published, QueueError> {
        check(subject, id, payload.len(), self.settings.largest)?;
        let attempt = format!("publishing {id:?} to {subject}");
        let address = self.address("work", subject, Some(id));
        for again in [true, false] {
            let mut headers = HeaderMap::new();
            headers.insert(ID, id);
            headers.insert(
                async_nats::header::NATS_MESSAGE_ID,
                format!("{subject}/{id}").as_str(),
            );
            let sent = timeout(
                EXCHANGE,
                self.send(address.clone(), headers, payload.clone()),
            )
            .await;
            return match sent {
                Ok(Ok(false)) => Ok(Published::Accepted),
                Ok(Ok(true)) => Ok(Published::Duplicate),
                Ok(Err(error)) if is_pending(&error) => Ok(Published::Duplicate),
                Ok(Err(error)) if again && error.kind() == PublishErrorKind::StreamNotFound => {
                    self.ensure_streams().await?;
                    continue;
                }
                Ok(Err(error)) => Err(QueueError::unavailable(&attempt, error)),
                Err(_) => Err(QueueError::unavailable(
                    &attempt,
                    format!("no answer within {EXCHANGE:?}"),
                )),
            };
        }
        Err(QueueError::unavailable(&attempt, "the stream is gone"))
    }

    async fn pull(
        &self,
        subject: &str,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, QueueError> {
        check_subject(subject)?;
        let attempt = format!("pulling from {subject}");
        let consumer = self.consumer(subject).await?;
        let fetched = self.fetch(&consumer, limit, wait);
        let messages = match self.within(&attempt, wait + EXCHANGE, fetched).await {
            Ok(messages) => messages,
            Err(error) => {
                self.forget(subject).await;
                return Err(error);
            }
        };
        let mut deliveries = Vec::with_capacity(messages.len());
        for message in messages {
            match self.delivery(subject, message).await {
                Ok(delivery) => deliveries.extend(delivery),
                // The others are good; this one comes again.
                Err(error) => tracing::warn!(%error, "a message cannot be delivered"),
            }
        }
        Ok(deliveries)
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), QueueError> {
        self.say(delivery, AckKind::Ack).await
    }

    async fn nak(
        &self,
        delivery: &Delivery,
        delay: Duration,
        reason: &str,
    ) -> Result<(), QueueError> {
        match delivery.last {
            true => self.bury(delivery, reason).await,
            false => self.say(delivery, AckKind::Nak(Some(delay))).await,
        }
    }

    async fn progress(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let attempt = format!("prolonging {:?} of {}", delivery.id, delivery.subject);
        let Receipt::Nats(message) = &delivery.receipt else {
            return Err(QueueError::lost(delivery));
        };
        self.within(&attempt, EXCHANGE, message.ack_with(AckKind::Progress))
            .await
    }

    async fn term(&self, delivery: &Delivery, reason: &str) -> Result<(), QueueError> {
        self.bury(delivery, reason).await
    }

    async fn depth(&self, subject: &str) -> Result<Depth, QueueError> {
        check_subject(subject)?;
        let attempt = format!("counting the messages of {subject}");
        let consumer = self.consumer(subject).await?;
        let info = match self.within(&attempt, EXCHANGE, consumer.get_info()).await {
            Ok(info) => info,
            Err(error) => {
                self.forget(subject).await;
                return Err(error);
            }
        };
        let graves = self.stream(self.graves()).await?;
        let filter = self.address("dead", subject, None);
        let counted = async {
            // One message of each: the id is a part of its address.
            let named = graves.info_with_subjects(filter).await?;
            named.try_fold(0, async |sum, _| Ok(sum + 1)).await
        };
        Ok(Depth {
            waiting: info.num_pending,
            running: info.num_ack_pending as u64,
            dead: self.within(&attempt, EXCHANGE, counted).await?,
        })
    }

    async fn dead(&self, subject: &str, limit: usize) -> Result<Vec<Dead>, QueueError> {
        check_subject(subject)?;
        let attempt = format!("listing the dead of {subject}");
        let stream = self.stream(self.graves()).await?;
        let filter = self.address("dead", subject, None);
        let mut dead = Vec::new();
        let mut next = 1;
        while dead.len() < limit {
            let asked = stream
                .raw_message_builder()
                .sequence(next)
                .next_by_subject(&filter)
                .send();
            let message = match timeout(EXCHANGE, asked).await {
                Ok(Ok(message)) => message,
                Ok(Err(error)) if error.to_string().contains("no message found") => break,
                Ok(Err(error)) => return Err(QueueError::unavailable(&attempt, error)),
                Err(_) => return Err(QueueError::unavailable(&attempt, "no answer in time")),
            };
            next = message.sequence + 1;
            let header = |name| {
                message
                    .headers
                    .get(name)
                    .map(|value| value.as_str().to_string())
            };
            dead.push(Dead {
                subject: subject.into(),
                id: header(ID).unwrap_or_default(),
                reason: header(REASON).unwrap_or_default(),
                tries: header(TRIES)
                    .and_then(|tries| tries.parse().ok())
                    .unwrap_or(0),
                at: SystemTime::from(message.time),
                payload: message.payload,
            });
        }
        Ok(dead)
    }
}
