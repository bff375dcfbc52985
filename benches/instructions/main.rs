//! Fixed workloads, one a process, whose instructions are counted: `benches/instructions/run` does it under callgrind.
//!
//! `instructions NAME` runs one; without a name all are run, which tells that they run. With `--set-up` it ends where [`counted`] would begin:
//! what that takes is not the workload's. Everything runs on the main thread.

#[path = "../workloads/mod.rs"]
#[allow(dead_code, reason = "each bench uses some of them")]
mod workloads;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use pollpace::engine::{self, Outcome};
use pollpace::experiment::store::Store;
use pollpace::experiment::sweep::Shard;
use pollpace::model::Model;
use pollpace::scenario;
use workloads::{Hold, Unwatched};

/// Name, and what it runs.
const WORKLOADS: [(&str, fn()); 6] = [
    ("w1", w1),
    ("without-queues", without_queues),
    ("under-pressure", under_pressure),
    ("hold", hold),
    ("sweep", sweep),
    ("scenario", read_scenario),
];

fn main() {
    // What runs in parallel elsewhere is counted on this thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.use_current_thread()
        .build_global()
        .expect("no other pool was built");
    let name = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    let set_up = std::env::args().any(|a| a == "--set-up");
    SET_UP_ONLY.store(set_up, Ordering::Relaxed);
    let mut known = false;
    for (workload, run) in WORKLOADS {
        if name.as_ref().is_none_or(|name| name == workload) {
            run();
            known = true;
        }
    }
    if !known {
        let names = WORKLOADS.map(|(name, _)| name).join(", ");
        eprintln!("no workload has this name; there are {names}");
        std::process::exit(2);
    }
}

/// Does the program end when the set-up is done?
static SET_UP_ONLY: AtomicBool = AtomicBool::new(false);

/// The instructions of `work` are those of the workload.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    if SET_UP_ONLY.load(Ordering::Relaxed) {
        std::process::exit(0);
    }
    work();
}

/// Runs one replication, counted.
fn simulate(model: &Model) -> Outcome {
    let mut outcome = None;
    counted(&mut || outcome = Some(engine::run(model, 0, None, &AtomicBool::new(false))));
    let outcome = outcome.expect("it was run");
    outcome.unwrap_or_else(|stopped| panic!("{stopped}"))
}

/// W1 with 10,000 tasks.
fn w1() {
    let outcome = simulate(&workloads::w1(10_000, &[]));
    assert!(outcome.totals.sent > 500_000);
}

/// W1 with 10,000 tasks on servers that take no time.
fn without_queues() {
    let outcome = simulate(&workloads::w1(10_000, &workloads::without_queues()));
    assert!(outcome.totals.sent > 500_000);
    let waits = outcome.pairs.iter().map(|pair| pair.store_wait.sum());
    assert_eq!(waits.sum::<u128>(), 0);
}

/// W1 with 2,000 tasks, a fleet budget, rate limits, timeouts and breakers, all of which act.
fn under_pressure() {
    let outcome = simulate(&workloads::w1(2_000, &workloads::under_pressure(2_000)));
    let pairs = &outcome.pairs;
    assert!(pairs.iter().any(|pair| pair.refused > 1_000));
    assert!(pairs.iter().any(|pair| pair.opened > 10));
    assert!(pairs.iter().any(|pair| pair.budget_delay.max() > Some(0)));
}

/// The queue alone: 100,000 events pending, a million taken and put.
fn hold() {
    let mut hold = Hold::new(100_000);
    counted(&mut || {
        black_box(hold.run(1_000_000));
    });
}

/// Nine cells of a sweep of small runs, two replications each, kept on disk.
fn sweep() {
    let plan = workloads::sweep(3, 2, 0.1);
    let folder = tempfile::tempdir().expect("a folder for what the sweep keeps");
    let store = Store::new(folder.path());
    let stop = AtomicBool::new(false);
    counted(&mut || {
        let cells = plan.run(Shard::WHOLE, &store, &stop, &Unwatched);
        let cells = cells.unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(cells.len() == 9 && cells.iter().all(|cell| cell.whole));
    });
}

/// Reads, checks and compiles a scenario.
fn read_scenario() {
    let text = include_str!("../../models/mixed-fleet.toml");
    counted(&mut || {
        let loaded = scenario::parse("mixed-fleet.toml", black_box(text), &[]);
        let scenario = loaded.unwrap_or_else(|wrong| panic!("{wrong}")).scenario;
        black_box(Model::new(&scenario));
    });
}
