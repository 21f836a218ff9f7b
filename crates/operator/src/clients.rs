//! Clients of registries that outlive a message, so that a connection, a token and what was read of a
//! manifest serve more than one image. A client belongs to a Registry as it is and to its logins as
//! they are: when either changes, another is made.

use muster_registry::{Client, Error};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A client that nobody asked for so long is let go.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How many are kept.
const MOST: usize = 64;

/// The digest of all that makes a client what it is.
pub(crate) type Key = [u8; 32];

/// The clients that are kept.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    kept: Mutex<HashMap<Key, (Client, Instant)>>,
}

impl Clients {
    /// The client of a key, made if there is none.
    pub(crate) fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Client, Error>,
    ) -> Result<Client, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, asked)| asked.elapsed() < IDLE);
        if let Some((client, asked)) = kept.get_mut(&key) {
            *asked = Instant::now();
            return Ok(client.clone());
        }
        let client = make()?;
        if kept.len() >= MOST {
            let oldest = kept.iter().min_by_key(|(_, (_, asked))| *asked);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                kept.remove(&oldest);
            }
        }
        kept.insert(key, (client.clone(), Instant::now()));
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_registry::{Options, Traffic};
    use std::cell::Cell;

    #[test]
    fn a_client_is_made_once_for_a_key_and_only_so_many_are_kept() {
        let clients = Clients::default();
        let made = Cell::new(0);
        let get = |number: u8| {
            let make = || {
                made.set(made.get() + 1);
                Client::new(Options::default(), Traffic::default())
            };
            clients.get([number; 32], make).expect("a client");
        };
        get(1);
        get(1);
        assert_eq!(made.get(), 1);
        for number in 2..=MOST as u8 + 1 {
            get(number);
        }
        assert_eq!(clients.kept.lock().unwrap().len(), MOST);
        get(MOST as u8 + 1);
        assert_eq!(made.get(), MOST + 1);
        get(1);
        assert_eq!(made.get(), MOST + 2, "the oldest was let go");
    }
}
