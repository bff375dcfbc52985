//! Parts of the simulator by themselves, and a whole sweep.
//!
//! `cargo bench --bench parts [-- NAME]`: `queue`, `policy`, `metrics` or `sweep`.

mod metrics;
mod policy;
mod queue;
mod sweep;
#[path = "../workloads/mod.rs"]
#[allow(dead_code, reason = "each bench uses some of them")]
mod workloads;

fn main() {
    divan::main();
}
