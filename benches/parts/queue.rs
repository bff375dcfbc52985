//! The queue of pending events alone: the hold model.

use divan::Bencher;
use divan::counter::ItemsCount;

use crate::workloads::Hold;

/// Pops and pushes in one sample.
const TIMES: u32 = 100_000;

/// A pop and a push, with so many events pending.
#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 20)]
fn hold(bencher: Bencher, pending: u32) {
    let mut hold = Hold::new(pending);
    bencher
        .counter(ItemsCount::new(TIMES))
        .bench_local(|| hold.run(TIMES));
}
