//! The directory where vulnerability data lives, and how it gets there: pulled from a registry,
//! imported from files, replaced while others read. It knows files, downloads and ages, and refuses
//! to know matching. Start reading at [`DataDirectory`].
//!
//! Each kind of data is one file, which is replaced by renaming a whole, checked one over it. That
//! is all the order there is: readers keep what they have mapped, updaters do not wait for one
//! another, the last to finish wins, and a killed process leaves nothing but a file that is continued
//! or deleted later. The file of OSV records holds several origins; imports of these wait for one
//! another while they write.

mod directory;
mod error;
pub mod hub;
mod import;
mod origins;
mod part;
mod progress;
mod pull;
mod recognise;

pub use directory::{DataDirectory, Info, Opened, PartInfo};
pub use error::{Error, Failure};
pub use import::{Import, Imported};
pub use origins::OriginInfo;
pub use part::Kind;
pub use progress::{Progress, Silent};
pub use pull::{DEFAULT_REPOSITORIES, Outcome, Update};
