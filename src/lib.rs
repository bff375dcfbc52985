//! A deterministic discrete-event simulator of polling load.
//!
//! Agent hosts poll durable tasks; servers may suggest how often. Which floor and which ceiling should a host put around
//! the suggestion? This crate describes a fleet as a [`scenario`], compiles it into a [`model`], runs it in the
//! [`engine`] under a [`policy`], and gives [`metrics`] with confidence intervals over the replications of an [`experiment`].
//! Where a closed form exists, [`theory`] has it and the simulator meets it. [`logs`] makes a scenario of what was logged.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! let text = r#"
//!     [run]
//!     horizon = "10min"
//!     [[server]]
//!     name = "batch"
//!     [[tenant]]
//!     name = "agents"
//!     arrivals = { poisson = { rate = "2/s" } }
//!     duration = { exponential = { mean = "30s" } }
//!     servers = { batch = 1 }
//!     policy = "envelope"
//!     [policy.envelope]
//!     default = "5s"
//! "#;
//! let scenario = pollpace::scenario::parse("example", text, &[])?.scenario;
//! let results = pollpace::experiment::run(&scenario, &AtomicBool::new(false), |_| {})?;
//! let rate = results.estimate("fleet", "tasks_get_rate_mean_per_s").and_then(|e| e.mean).unwrap();
//! // Arrivals × polls per task: 2/s × 1/(1 - e^(-5/30)), less what the start still lacks.
//! assert!((rate - 13.03).abs() < 1.3, "{rate}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Data flows one way: `scenario → model → engine → metrics → experiment → report, charts`; a module knows only what stands
//! to its left. [`policy`] stands beside the engine and knows neither clock nor I/O.

#![warn(missing_docs)]

pub mod catalogue;
pub mod charts;
pub mod disk;
pub mod engine;
pub mod experiment;
pub mod export;
pub mod logs;
pub mod metrics;
pub mod model;
pub mod policy;
pub mod random;
pub mod report;
pub mod scenario;
pub mod theory;
