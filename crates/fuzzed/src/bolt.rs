//! bbolt files: whatever the bytes are, every walk and look-up ends.

use muster_bolt::{Bolt, Bucket, Entry};

fn walk(bucket: Bucket, budget: &mut usize) {
    for item in bucket.iter() {
        let Some(left) = budget.checked_sub(1) else {
            return;
        };
        *budget = left;
        match item {
            Ok((key, Entry::Bucket(inner))) => {
                let _ = bucket.bucket(key);
                walk(inner, budget);
            }
            Ok((key, Entry::Value(_))) => {
                let _ = bucket.get(key);
                let _ = bucket.seek(key).next();
            }
            Err(_) => return,
        }
    }
}

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(database) = Bolt::from_bytes(bytes.to_vec()) {
        walk(database.root(), &mut 10_000);
    }
}
