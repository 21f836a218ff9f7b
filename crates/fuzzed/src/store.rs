//! As much of the server's store as a continue token knows, under the path where it looks for it.

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}
