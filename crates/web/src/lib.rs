//! Muster's web pages: what was found, for people. Drawn on the server; a small script keeps them current,
//! and everything works without it. Pages are read through a client that acts with the rights of whoever
//! looks, so that nobody is shown what they may not read; where that client leads and how requests arrive
//! is not known here. What is read of reports, and how upgrades are ranked, is shared with `muster why`.
//! Start reading at [`Pages`]: a request becomes a route and a filter (`address`), somebody
//! (`door`), what they may see (`reader`), and a page (`page`).

mod address;
mod audit;
mod carrier;
mod chart;
mod distil;
mod door;
pub mod finding;
mod history;
mod layout;
mod page;
mod pages;
mod parts;
pub mod read;
mod reader;
mod shelf;
mod stock;
pub mod upgrade;
pub mod workload;

pub use address::ROOT;
pub use door::{Door, Entry, LinkDoor, NoSecret, Review, TokenDoor, Visitor, Way};
pub use pages::{Pages, sign_in_link};
