//! A sweep as `pollpace sweep` runs it, on all cores: ten floors with ten ceilings, ten replications of about 1,000 tasks each.

use std::sync::atomic::AtomicBool;

use divan::Bencher;
use pollpace::experiment::store::Store;
use pollpace::experiment::sweep::Shard;

use crate::workloads::{self, Unwatched};

#[divan::bench(sample_count = 3, sample_size = 1)]
fn ten_by_ten(bencher: Bencher) {
    let plan = workloads::sweep(10, 10, 1.0);
    let stop = AtomicBool::new(false);
    bencher
        .with_inputs(|| tempfile::tempdir().expect("a folder for what the sweep keeps"))
        .bench_local_values(|folder| {
            let cells = plan.run(Shard::WHOLE, &Store::new(folder.path()), &stop, &Unwatched);
            assert_eq!(cells.expect("every cell runs").len(), 100);
            folder
        });
}
