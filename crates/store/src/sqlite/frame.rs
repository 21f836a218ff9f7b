//! Many states in one row. A row costs more on its way from the engine's thread to ours than a
//! small object costs to read, so the engine joins the objects of a page into one text and we cut
//! it apart again without copying. Compressed bodies are bytes, which a text of the engine may
//! not hold; of them the frame has only the number, and each is read as a row of its own.

use crate::body::references;
use crate::fault::damaged;
use bytes::Bytes;
use muster_apiserver::store::{Key, StoreError};
use muster_kind::Body;

/// An expression over a key `k` and its state `b`: seven numbers, each followed by a space, and
/// what their first and last two measure.
pub(super) const FRAME: &str = "
printf('%d %d %d %d %d %d %d ',
    octet_length(k.namespace), octet_length(k.name), b.id, b.rv, b.revision_at,
    COALESCE(octet_length(b.blobs) * 2, 0),
    CASE b.form WHEN 0 THEN octet_length(b.text) ELSE -1 END)
|| k.namespace || k.name || COALESCE(hex(b.blobs), '')
|| CASE b.form WHEN 0 THEN CAST(b.text AS TEXT) ELSE '' END";

/// A state as its frame tells it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Framed {
    pub(super) key: Key,
    /// The number of its row.
    pub(super) id: i64,
    pub(super) revision: u64,
    /// None if it is compressed.
    pub(super) body: Option<Body>,
}

/// Cuts joined frames apart.
pub(super) fn cut(joined: Bytes) -> Result<Vec<Framed>, StoreError> {
    let mut rest = Frames(joined);
    let mut found = Vec::new();
    while !rest.0.is_empty() {
        found.push(rest.next()?);
    }
    Ok(found)
}

struct Frames(Bytes);

impl Frames {
    fn next(&mut self) -> Result<Framed, StoreError> {
        let (namespace, name) = (self.size()?, self.size()?);
        let (id, revision) = (self.number()?, self.number()?);
        let (revision_at, blobs, text) = (self.size()?, self.size()?, self.number()?);
        let key = Key {
            namespace: self.text(namespace)?,
            name: self.text(name)?,
        };
        let blobs = self.take(blobs)?;
        let body = match usize::try_from(text) {
            Err(_) => None,
            Ok(size) => Some(Body::checked(
                self.take(size)?,
                revision_at,
                references(&unhex(&blobs)?)?,
            )),
        };
        Ok(Framed {
            key,
            id,
            revision: revision as u64,
            body: body
                .map(|body| body.ok_or_else(|| damaged("a body's holes lie outside of it")))
                .transpose()?,
        })
    }

    fn take(&mut self, size: usize) -> Result<Bytes, StoreError> {
        if size > self.0.len() {
            return Err(damaged("a page of states is cut short"));
        }
        Ok(self.0.split_to(size))
    }

    fn text(&mut self, size: usize) -> Result<String, StoreError> {
        let bytes = self.take(size)?;
        String::from_utf8(bytes.into()).map_err(|_| damaged("a key is not text"))
    }

    fn number(&mut self) -> Result<i64, StoreError> {
        let wrong = || damaged("a state has no measure");
        let end = self.0.iter().take(21).position(|byte| *byte == b' ');
        let digits = self.take(end.ok_or_else(wrong)?)?;
        self.take(1)?;
        let number = std::str::from_utf8(&digits)
            .ok()
            .and_then(|n| n.parse().ok());
        number.ok_or_else(wrong)
    }

    fn size(&mut self) -> Result<usize, StoreError> {
        usize::try_from(self.number()?).map_err(|_| damaged("a state has a negative measure"))
    }
}

fn unhex(text: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (pairs, _) = text.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes = pairs.iter().map(byte).collect::<Option<_>>();
    bytes.ok_or_else(|| damaged("references to blobs are not hexadecimal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;
    use sqlx::{Connection, SqliteConnection};

    #[tokio::test]
    async fn what_the_engine_joins_comes_apart_again() {
        let mut connection = SqliteConnection::connect(":memory:").await.unwrap();
        schema::migrate(&mut connection, 0, schema::KNOWN)
            .await
            .unwrap();
        let reference = [0_u8, 0, 0, 0, 0, 0, 0, 3].into_iter().chain([0xAB; 32]);
        let reference: Vec<u8> = reference.collect();
        for (id, form, blobs, text) in [
            (7_i64, 0_i64, None, "{\"ä\":\"☃\"}".as_bytes()),
            (8, 1, None, &[0, 255, 10, 32][..]),
            (9, 0, Some(reference), b"{}12 3"),
        ] {
            sqlx::query("INSERT INTO body VALUES ($1, $1 * 10, 2, $2, NULL, $3, $4)")
                .bind(id)
                .bind(form)
                .bind(blobs)
                .bind(text)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let statement = format!(
            "SELECT group_concat({FRAME}, '') FROM body b, (SELECT 'näme space' AS namespace, '4 2' AS name) k"
        );
        let joined: Vec<u8> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let found = cut(joined.into()).unwrap();
        let key = Key {
            namespace: "näme space".into(),
            name: "4 2".into(),
        };
        let body = |text: &'static str, blobs: Vec<(usize, muster_kind::Digest)>| Body {
            text: Bytes::from_static(text.as_bytes()),
            revision_at: 2,
            blobs,
            quotes: vec![],
        };
        let bodies = [
            Some(body("{\"ä\":\"☃\"}", vec![])),
            None,
            Some(body("{}12 3", vec![(3, muster_kind::Digest([0xAB; 32]))])),
        ];
        let expected: Vec<Framed> = (7..)
            .zip(bodies)
            .map(|(id, body)| Framed {
                key: key.clone(),
                id,
                revision: id as u64 * 10,
                body,
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn frames_that_do_not_fit_are_an_error() {
        for joined in [
            "1",
            "1 1 1 1 1 1 ",
            "1 1 1 1 0 0 9 abc",
            "-1 1 1 1 0 0 0 ab",
            "1 1 1 1 9 0 2 ab{}",
            "1 1 1 1 0 4 2 abzzzz{}",
            "99999999999999999999999999 ",
        ] {
            assert!(
                cut(Bytes::from_static(joined.as_bytes())).is_err(),
                "{joined}"
            );
        }
    }
}
