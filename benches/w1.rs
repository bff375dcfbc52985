//! The yardstick W1 at three sizes: million polls per second of the whole simulation on one thread, and peak memory.
//!
//! `cargo bench --bench w1 [-- TASKS…]`; by default 10,000, 100,000 and 1,000,000 tasks. Speed is noisy on shared
//! machines; compare ratios of one run.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pollpace::{engine, model::Model, scenario};

fn main() {
    let sizes: Vec<u64> = std::env::args()
        .filter_map(|a| a.replace('_', "").parse().ok())
        .collect();
    let sizes = if sizes.is_empty() {
        vec![10_000, 100_000, 1_000_000]
    } else {
        sizes
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/w1.toml");
    for tasks in sizes {
        let rate = format!(
            "tenant.agents.arrivals.poisson.rate=\"{}/s\"",
            tasks as f64 / 600.0
        );
        let scenario = scenario::load(&file, &[rate]).unwrap().scenario;
        let model = Model::new(&scenario);
        let start = Instant::now();
        let outcome = engine::run(&model, 0, None, &AtomicBool::new(false)).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let polls = outcome.totals.sent as f64;
        println!(
            "{tasks:>9} tasks  {polls:>10} polls  {:>6.2} million polls/s  {:>5.1} ns/poll  {} MiB  fingerprint {:016x}",
            polls / seconds / 1e6,
            seconds * 1e9 / polls,
            peak_memory_mib().map_or("?".into(), |m| m.to_string()),
            outcome.fingerprint,
        );
    }
}

/// Peak resident memory of this process, where the system tells.
fn peak_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib / 1024)
}
