//! The rows of a write, as statements that run together: one trip to the engine's thread instead
//! of ten. Equal shapes of writes give equal texts, which the engine prepares once.

use super::apply::{Current, Identifiers};
use super::{event_number, now};
use crate::facts::{Facts, added, added_fields};
use crate::prepare::Prepared;
use muster_apiserver::store::{EventType, Key};
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, SqliteConnection};
use std::fmt::Write as _;

const BLOB: &str = "
INSERT INTO blob (id, sha256, size, touched)
VALUES (@, @, @, @)
ON CONFLICT (sha256) DO UPDATE SET touched = excluded.touched;
INSERT INTO blob_bytes (id, zstd)
SELECT @, @
WHERE EXISTS (SELECT 1 FROM blob WHERE id = @);";

const TOUCH: &str = "
UPDATE blob
SET touched = @
WHERE sha256 = @;";

const BODY: &str = "
INSERT INTO body (id, rv, revision_at, form, facts, blobs, text)
VALUES (@, @, @, @, @, @, @);";

const BODY_BLOB: &str = "
INSERT INTO body_blob (body, sha256)
VALUES (@, @);";

const OBJECT: &str = "
INSERT INTO object (resource, namespace, name, uid, rv, body)
VALUES (@, @, @, @, @, @)
ON CONFLICT (resource, namespace, name)
DO UPDATE SET uid = excluded.uid, rv = excluded.rv, body = excluded.body;";

const NO_OBJECT: &str = "
DELETE FROM object
WHERE resource = @ AND namespace = @ AND name = @;";

const EVENT: &str = "
INSERT INTO event (resource, rv, type, namespace, name, body, before, time)
VALUES (@, @, @, @, @, @, @, @);";

const TICK: &str = "
UPDATE clock
SET rv = @
WHERE id = @;";

const LABEL: &str = "
INSERT INTO label (resource, key, value, namespace, name)
VALUES (@, @, @, @, @);";

const NO_LABEL: &str = "
DELETE FROM label
WHERE resource = @ AND key = @ AND value = @ AND namespace = @ AND name = @;";

const FIELD: &str = "
INSERT INTO field (resource, key, value, namespace, name)
VALUES (@, @, @, @, @);";

const NO_FIELD: &str = "
DELETE FROM field
WHERE resource = @ AND key = @ AND value = @ AND namespace = @ AND name = @;";

const OWNER: &str = "
INSERT INTO owner (uid, resource, namespace, name)
VALUES (@, @, @, @);";

const NO_OWNER: &str = "
DELETE FROM owner
WHERE uid = @ AND resource = @ AND namespace = @ AND name = @;";

/// Statements and their values. Each `@` of a statement becomes the next `$n`, because a value
/// counts over all of them.
#[derive(Default)]
pub(super) struct Script {
    text: String,
    values: SqliteArguments,
}

/// A value of a statement.
enum Value<'a> {
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Null,
}

impl Script {
    fn push(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<(), sqlx::Error> {
        let mut number = self.values.len();
        for (at, piece) in statement.split('@').enumerate() {
            if at > 0 {
                number += 1;
                // Writing into a string has no way to fail.
                let _ = write!(self.text, "${number}");
            }
            self.text.push_str(piece);
        }
        for value in values {
            match value {
                Value::Number(number) => self.values.add(*number),
                Value::Text(text) => self.values.add(*text),
                Value::Bytes(bytes) => self.values.add(*bytes),
                Value::Null => self.values.add(None::<i64>),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        debug_assert_eq!(number, self.values.len(), "{statement}");
        Ok(())
    }

    /// Stores the blobs given, and touches those that are there.
    pub(super) fn blobs(
        &mut self,
        write: &Prepared,
        identifiers: &mut Identifiers,
    ) -> Result<(), sqlx::Error> {
        use Value::{Bytes, Number};
        for (digest, given) in &write.blobs {
            let Some((packed, size)) = given else {
                self.push(TOUCH, &[Number(now()), Bytes(&digest.0)])?;
                continue;
            };
            identifiers.blob += 1;
            let id = identifiers.blob;
            let row = [
                Number(id),
                Bytes(&digest.0),
                Number(*size as i64),
                Number(now()),
            ];
            let bytes = [Number(id), Bytes(packed), Number(id)];
            let values: Vec<Value<'_>> = row.into_iter().chain(bytes).collect();
            self.push(BLOB, &values)?;
        }
        Ok(())
    }

    /// Stores the state, the entry of the log that brings it about, and the clock.
    pub(super) fn state(
        &mut self,
        write: &Prepared,
        current: &Current,
        revision: i64,
        identifiers: &mut Identifiers,
    ) -> Result<(), sqlx::Error> {
        use Value::{Bytes, Null, Number, Text};
        let Key { namespace, name } = &write.key;
        let key = || [Number(current.resource), Text(namespace), Text(name)];
        let row = &write.row;
        identifiers.body += 1;
        let id = identifiers.body;
        let facts = write.next.as_ref().and_then(|(_, facts)| facts.write());
        self.push(
            BODY,
            &[
                Number(id),
                Number(revision),
                Number(row.revision_at),
                Number(row.form),
                facts.as_deref().map_or(Null, Text),
                row.blobs.as_deref().map_or(Null, Bytes),
                Bytes(&row.text),
            ],
        )?;
        for digest in &row.digests {
            self.push(BODY_BLOB, &[Number(id), Bytes(&digest.0)])?;
        }
        let event = match &write.next {
            None => {
                self.push(NO_OBJECT, &key())?;
                EventType::Deleted
            }
            Some((uid, _)) => {
                let rest = [Text(uid), Number(revision), Number(id)];
                self.push(OBJECT, &key().into_iter().chain(rest).collect::<Vec<_>>())?;
                if current.body.is_some() {
                    EventType::Modified
                } else {
                    EventType::Added
                }
            }
        };
        self.push(
            EVENT,
            &[
                Number(current.resource),
                Number(revision),
                Number(event_number(event)),
                Text(namespace),
                Text(name),
                Number(id),
                current.body.map_or(Null, Number),
                Number(now()),
            ],
        )?;
        self.push(TICK, &[Number(revision), Number(current.resource)])
    }

    /// Changes in the side tables only what differs; most updates change nothing there.
    pub(super) fn facts(
        &mut self,
        write: &Prepared,
        resource: i64,
        old: &Facts,
    ) -> Result<(), sqlx::Error> {
        use Value::{Number, Text};
        let none = Facts::default();
        let new = write.next.as_ref().map_or(&none, |(_, facts)| facts);
        let Key { namespace, name } = &write.key;
        for (statement, entries) in [
            (NO_LABEL, added(&new.labels, &old.labels)),
            (LABEL, added(&old.labels, &new.labels)),
            (NO_FIELD, added_fields(new, old)),
            (FIELD, added_fields(old, new)),
        ] {
            for (key, value) in entries {
                let row = [
                    Number(resource),
                    Text(key),
                    Text(value),
                    Text(namespace),
                    Text(name),
                ];
                self.push(statement, &row)?;
            }
        }
        let gone = old
            .owners
            .difference(&new.owners)
            .map(|uid| (NO_OWNER, uid));
        let come = new.owners.difference(&old.owners).map(|uid| (OWNER, uid));
        for (statement, uid) in gone.chain(come) {
            self.push(
                statement,
                &[Text(uid), Number(resource), Text(namespace), Text(name)],
            )?;
        }
        Ok(())
    }

    /// Runs all of it.
    pub(super) async fn run(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        // The text is made of the constants above; every value is bound.
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        query.execute(connection).await.map(drop)
    }
}
