//! The yardstick W1 at three sizes: million polls per second of the whole simulation on one thread, and peak memory.
//!
//! `cargo bench --bench w1 [-- FLEET… TASKS…]`; by default `w1` and 10,000, 100,000 and 1,000,000 tasks. Other fleets: `without-queues`, whose servers
//! take no time; `under-pressure`, with a budget, rate limits, timeouts and breakers. Speed is noisy on shared machines; compare ratios of one run.

#[allow(dead_code, reason = "each bench uses some of them")]
mod workloads;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pollpace::engine;

/// Name, and what is set in W1 for so many tasks.
type Fleet = (&'static str, fn(u32) -> Vec<String>);

const FLEETS: [Fleet; 3] = [
    ("w1", |_| Vec::new()),
    ("without-queues", |_| workloads::without_queues()),
    ("under-pressure", workloads::under_pressure),
];

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let named = |fleet: &&Fleet| arguments.iter().any(|a| a == fleet.0);
    let mut fleets: Vec<_> = FLEETS.iter().filter(named).collect();
    if fleets.is_empty() {
        fleets.push(&FLEETS[0]);
    }
    let sizes = arguments
        .iter()
        .filter_map(|a| a.replace('_', "").parse().ok());
    let mut sizes: Vec<u32> = sizes.collect();
    if sizes.is_empty() {
        sizes = vec![10_000, 100_000, 1_000_000];
    }
    for (fleet, set) in fleets {
        for &tasks in &sizes {
            measure(fleet, tasks, &set(tasks));
        }
    }
}

fn measure(fleet: &str, tasks: u32, set: &[String]) {
    let model = workloads::w1(tasks, set);
    let start = Instant::now();
    let outcome = engine::run(&model, 0, None, &AtomicBool::new(false));
    let seconds = start.elapsed().as_secs_f64();
    let outcome = outcome.unwrap_or_else(|stopped| panic!("{stopped}"));
    let polls = outcome.totals.sent as f64;
    println!(
        "{fleet:<14}  {tasks:>9} tasks  {polls:>10} polls  {:>6.2} million polls/s  {:>5.1} ns/poll  {} MiB  fingerprint {:016x}",
        polls / seconds / 1e6,
        seconds * 1e9 / polls,
        peak_memory_mib().map_or("?".into(), |m| m.to_string()),
        outcome.fingerprint,
    );
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
