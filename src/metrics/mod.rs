//! What was seen: integer tallies while the engine runs, named values of groups at the end, alerts with evidence.

pub mod alerts;
pub mod histogram;
pub mod occupancy;
pub mod summary;
pub mod tally;
