//! A watch as it comes over the wire: one line per event, read with a deadline.

use crate::http::{Client, Request};
use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// An open answer that is read line by line. Dropping it hangs up.
#[derive(Debug)]
pub struct Watch {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line: a long line comes in many frames.
    searched: usize,
    /// Dropping this would close our half of the connection, and the server would hang up.
    _connection: SendRequest<Full<Bytes>>,
}

/// What reading a watch brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A line, without its end.
    Line(Vec<u8>),
    /// The server ended the stream cleanly. What stood after the last line end is given.
    End(Vec<u8>),
    /// Nothing came in time; the watch is still open.
    Quiet,
}

impl Client {
    /// Sends a request and returns when the answer's head is here; its lines are read one by one.
    /// A server that answers with an error is no failure here: look at the status.
    pub async fn watch(&self, request: Request, limit: Duration) -> Result<Watch> {
        let target = request.target.clone();
        let (answer, connection) = timeout_at(Instant::now() + limit, self.open(request))
            .await
            .with_context(|| format!("no head of the watch within {limit:?}: {target}"))?
            .with_context(|| format!("watch {target}"))?;
        let (head, body) = answer.into_parts();
        Ok(Watch {
            status: head.status,
            headers: head.headers,
            body,
            buffer: Vec::new(),
            searched: 0,
            _connection: connection,
        })
    }
}

impl Watch {
    /// The next line. A connection that breaks off without an orderly end is an error.
    pub async fn next(&mut self, limit: Duration) -> Result<Next> {
        let deadline = Instant::now() + limit;
        loop {
            let unread = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unread.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
                line.pop();
                self.searched = 0;
                return Ok(Next::Line(line));
            }
            self.searched = self.buffer.len();
            match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Ok(Next::Quiet),
                Ok(None) => {
                    self.searched = 0;
                    return Ok(Next::End(std::mem::take(&mut self.buffer)));
                }
                Ok(Some(frame)) => {
                    if let Some(data) = frame.context("the watch broke off")?.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
        }
    }

    /// The next line as JSON; nothing if the stream ended or stayed quiet.
    pub async fn next_event(&mut self, limit: Duration) -> Result<Option<serde_json::Value>> {
        match self.next(limit).await? {
            Next::Line(line) => Ok(Some(serde_json::from_slice(&line)?)),
            Next::End(_) | Next::Quiet => Ok(None),
        }
    }

    /// Everything until the server ends the stream, for answers that are not watches after all.
    pub async fn rest(mut self, limit: Duration) -> Result<Vec<u8>> {
        let deadline = Instant::now() + limit;
        while let Some(frame) = timeout_at(deadline, self.body.frame()).await? {
            if let Some(data) = frame?.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
        Ok(self.buffer)
    }
}
