//! Every statement, in one place. A message with a lease is in somebody's hands until `visible`;
//! one without is waiting for that time.

pub(super) const VERSION: &str = "PRAGMA user_version";
pub(super) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Whoever had leases is gone.
pub(super) const RELEASE: &str = "
UPDATE message
SET visible = MIN(visible, $1), lease = 0
WHERE lease <> 0";

pub(super) const IS_FINISHED: &str = "
SELECT COUNT(*)
FROM finished
WHERE subject = $1 AND id = $2 AND until > $3";

pub(super) const INSERT: &str = "
INSERT INTO message (subject, id, payload, visible, attempts, lease, published, reason)
VALUES ($1, $2, $3, $4, 0, 0, $4, '')
ON CONFLICT (subject, id) DO NOTHING";

pub(super) const VISIBLE: &str = "
SELECT number, id, payload, attempts, reason, published
FROM message
WHERE subject = $1 AND visible <= $2
ORDER BY visible
LIMIT $3";

pub(super) const TAKE: &str = "
UPDATE message
SET visible = $2, lease = $3, attempts = attempts + 1
WHERE number = $1";

pub(super) const NEXT: &str = "
SELECT MIN(visible)
FROM message
WHERE subject = $1";

pub(super) const HELD: &str = "
SELECT subject, id, payload, attempts, published
FROM message
WHERE number = $1 AND lease = $2";

pub(super) const DELETE: &str = "
DELETE FROM message
WHERE number = $1";

pub(super) const FINISH: &str = "
INSERT INTO finished (subject, id, until)
VALUES ($1, $2, $3)
ON CONFLICT (subject, id) DO UPDATE SET until = excluded.until";

pub(super) const FORGET: &str = "
DELETE FROM finished
WHERE until <= $1";

pub(super) const RETURN: &str = "
UPDATE message
SET visible = $3, lease = 0, reason = $4
WHERE number = $1 AND lease = $2";

pub(super) const PROLONG: &str = "
UPDATE message
SET visible = $3
WHERE number = $1 AND lease = $2";

pub(super) const BURY: &str = "
INSERT INTO dead (subject, id, payload, reason, tries, at)
VALUES ($1, $2, $3, $4, $5, $6)";

pub(super) const EXHUME: &str = "
DELETE FROM dead
WHERE number <= (SELECT MAX(number) FROM dead) - $1";

pub(super) const DEAD: &str = "
SELECT id, payload, reason, tries, at
FROM dead
WHERE subject = $1
ORDER BY number
LIMIT $2";

pub(super) const DEPTH: &str = "
SELECT COUNT(*), COALESCE(SUM(lease <> 0 AND visible > $2), 0),
  (SELECT COUNT(*) FROM dead WHERE subject = $1)
FROM message
WHERE subject = $1";
