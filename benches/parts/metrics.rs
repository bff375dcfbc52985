//! What is recorded of polls, and the tallies that come of it.

use divan::Bencher;
use divan::counter::ItemsCount;
use pollpace::engine::Served;
use pollpace::metrics::histogram::Histogram;
use pollpace::metrics::tally::{PairTally, WINDOW};
use pollpace::policy::{Stage, SteadyWait};

/// Values or polls in one sample.
const RECORDS: u64 = 10_000;
/// The horizon of W1, ns.
const HORIZON: u64 = 600_000_000_000;

/// Waits of 900 ms to 1.1 s, ns, in no order.
fn waits() -> impl Iterator<Item = u64> {
    (0..RECORDS).map(|k| 900_000_000 + k.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 200_000_000)
}

/// A value into a histogram.
#[divan::bench]
fn histogram(bencher: Bencher) {
    let mut histogram = Histogram::default();
    bencher
        .counter(ItemsCount::new(RECORDS))
        .bench_local(|| waits().for_each(|wait| histogram.record(wait)));
}

/// What a poll leaves in a tally. Every other one has waited in the store's queue.
fn record(tally: &mut PairTally, number: u64, wait: u64) {
    let now = wait.wrapping_mul(number) % HORIZON;
    let queued = number % 2 * 100_000;
    let served = Served {
        start: now + queued,
        done: now + queued + 200_000,
        found: number % 2,
    };
    tally.sent += 1;
    tally.windows[(now / WINDOW) as usize] += 1;
    tally.gap.record(wait + 10_000_000);
    tally.count_served(now, served, 200_000, true);
    tally.count_wait(SteadyWait {
        wait,
        cause: Stage::Jitter,
        touched: 1 << Stage::Jitter as u16,
    });
    tally.seen += 1;
    tally.unchanged += 1;
    tally.same_hints += 1;
}

/// All records of a poll.
#[divan::bench]
fn poll(bencher: Bencher) {
    let mut tally = PairTally::new(HORIZON);
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        for (number, wait) in waits().enumerate() {
            record(&mut tally, number as u64, wait);
        }
    });
}

/// A whole tally added to another: once for each pair of classes and replication.
#[divan::bench]
fn merge(bencher: Bencher) {
    let mut tally = PairTally::new(HORIZON);
    for (number, wait) in waits().enumerate() {
        record(&mut tally, number as u64, wait);
    }
    let mut sum = PairTally::new(HORIZON);
    bencher.bench_local(|| sum.merge(&tally));
}
