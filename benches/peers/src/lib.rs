//! W1, the yardstick, as every program here simulates it.
//!
//! Tasks arrive as a Poisson stream, [`HORIZON`] long on the average, and run for [`MEAN_DURATION`] on the average. Each belongs to
//! one of [`SERVERS`] servers. Its first poll is sent one interval after its arrival, the next one interval after each answer. A poll
//! takes [`DELAY`] to its server, waits in the server's FIFO queue, is served in [`SERVICE`], and its answer takes [`DELAY`] back. Service
//! that ends at or after the task's end brings the task's last answer.
//!
//! Times are integer nanoseconds. A draw is a hash of (task, number of the draw), so every program meets the same tasks and the same
//! intervals, in whatever order it draws them.

pub mod buckets;
pub mod carried;

/// A second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
/// Tasks arrive over so long, on the average.
pub const HORIZON: u64 = 600 * SECOND;
/// Mean duration of a task.
pub const MEAN_DURATION: u64 = 60 * SECOND;
/// One-way delay between host and server.
pub const DELAY: u64 = 5_000_000;
/// Service of a poll.
pub const SERVICE: u64 = 200_000;
/// Servers.
pub const SERVERS: usize = 100;
/// The shortest interval between an answer and the next poll.
pub const INTERVAL_MIN: u64 = 900_000_000;
/// The longest one.
pub const INTERVAL_MAX: u64 = 1_100_000_000;

/// 64 random bits: the finaliser of SplitMix64 over (task, number of the draw).
#[inline(always)]
fn draw(task: u32, number: u32) -> u64 {
    let counter = (u64::from(task) << 32 | u64::from(number)) + 1;
    let mut z = counter.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Uniform in [0, n).
#[inline(always)]
fn below(n: u64, bits: u64) -> u64 {
    ((bits >> 32) * n) >> 32
}

/// Exponential of this mean, both in ns.
fn exponential(mean: f64, bits: u64) -> u64 {
    let uniform = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-uniform.ln() * mean) as u64
}

/// The interval before the poll of this number (0 is the first) of a task, ns.
#[inline(always)]
pub fn interval(task: u32, poll: u32) -> u64 {
    INTERVAL_MIN + below(INTERVAL_MAX - INTERVAL_MIN + 1, draw(task, poll + 8))
}

/// From the arrival of the task before to the arrival of this one, ns, where there are `tasks`.
pub fn gap(task: u32, tasks: u32) -> u64 {
    exponential(HORIZON as f64 / f64::from(tasks), draw(task, 0))
}

/// How long a task runs, ns.
pub fn duration(task: u32) -> u64 {
    exponential(MEAN_DURATION as f64, draw(task, 1))
}

/// The server of a task.
#[inline(always)]
pub fn server(task: u32) -> usize {
    below(SERVERS as u64, draw(task, 2)) as usize
}

/// What a program saw of W1.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Polls served.
    pub polls: u64,
    /// From each task's end to the answer that tells it, ns.
    pub latencies: Vec<u64>,
}

impl Outcome {
    /// Prints the one line that `run` reads.
    pub fn print(&self) {
        let tasks = self.latencies.len();
        let sum: u128 = self.latencies.iter().map(|&l| u128::from(l)).sum();
        let mean_ms = sum as f64 / tasks as f64 / 1e6;
        println!(
            r#"{{"tasks": {tasks}, "polls": {}, "latency_mean_ms": {mean_ms:.6}}}"#,
            self.polls
        );
    }
}

/// The number of tasks: the program's argument.
///
/// # Panics
/// Where that is no number from 1,000 on; fewer are too few for the programs by hand.
pub fn tasks() -> u32 {
    let tasks = std::env::args().nth(1).and_then(|a| a.parse().ok());
    tasks
        .filter(|&n| n >= 1_000)
        .expect("usage: PROGRAM TASKS, at least 1000")
}
