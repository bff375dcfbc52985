//! A small fleet to hold closed forms against.

use std::sync::atomic::AtomicBool;

use pollpace::experiment::{self, Results};
use pollpace::scenario::{self, Scenario};

/// The level of every interval.
pub const CONFIDENCE: f64 = 0.999;

/// A fleet of one tenant class on one server class, each given by the body of its table.
pub struct Fleet<'a> {
    pub run: &'a str,
    pub server: &'a str,
    pub tenant: &'a str,
    pub policy: &'a str,
    pub more: &'a str,
}

impl Default for Fleet<'_> {
    fn default() -> Self {
        Fleet {
            run: "horizon = \"1s\"\nreplications = 1",
            server: "",
            tenant: "",
            policy: "",
            more: "",
        }
    }
}

impl Fleet<'_> {
    /// The scenario that they make.
    pub fn scenario(&self) -> Scenario {
        let Fleet {
            run,
            server,
            tenant,
            policy,
            more,
        } = self;
        let text = format!(
            "[run]\nconfidence = {CONFIDENCE}\n{run}\n[[server]]\nname = \"s\"\n{server}\n\
             [[tenant]]\nname = \"t\"\nservers = {{ s = 1 }}\npolicy = \"p\"\n{tenant}\n[policy.p]\n{policy}\n{more}"
        );
        match scenario::parse("theory", &text, &[]) {
            Ok(loaded) => loaded.scenario,
            Err(error) => panic!("{error}\n{text}"),
        }
    }

    /// Its results.
    pub fn run(&self) -> Results {
        experiment::run(&self.scenario(), &AtomicBool::new(false), |_| {}).unwrap()
    }
}
