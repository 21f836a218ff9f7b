//! What a Kubernetes kind is, as data: its names, scope, schema, printer columns and
//! selectable fields, and the values every API server needs to speak about objects of it
//! (selectors, `Status`, `Table`, bodies as bytes). A leaf: it knows no server, no storage and
//! no kind in particular. Start reading at [`Kind`].

pub mod column;
pub mod cost;
pub mod kind;
pub mod name;
pub mod object;
pub mod openapi;
pub mod parse;
pub mod path;
mod scan;
pub mod schema;
pub mod segments;
pub mod selector;
pub mod status;
pub mod structural;
pub mod time;

mod sound;

pub use column::{Cell, Column};
pub use cost::Budget;
pub use kind::{FieldError, Kind, Scope};
pub use object::{Body, Digest, Object};
pub use path::FieldPath;
pub use schema::Schema;
pub use segments::{Quote, Segment, Segments};
pub use status::{Cause, Status};
