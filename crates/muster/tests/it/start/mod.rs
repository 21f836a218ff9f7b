//! Starting and ending `muster up`: what a user sees on the first day and on a bad day.

mod life;
mod refusals;
