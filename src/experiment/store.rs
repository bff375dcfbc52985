//! The results of a sweep on disk: a file for each unit of work, one replication of one cell, named by a hash of what it is.
//!
//! A file appears whole or not at all, so an interrupted sweep goes on where it stopped, replications can be added, and shards be merged. A
//! file of another version or another scenario has another name, and is never read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Replication;
use crate::catalogue;
use crate::disk::write_whole;
use crate::engine::Totals;
use crate::metrics::alerts::Alert;
use crate::scenario::fields::{Confidence, Count};
use crate::scenario::{Fnv, Scenario};

/// The version of this program, which stands in every unit.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// One replication of one cell, as kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// Version of the program that made it.
    pub version: String,
    /// Hash of what the scenario says, its objectives and number of replications left out.
    pub scenario: String,
    /// The replication's number.
    pub replication: u32,
    /// Fingerprint of its polls.
    pub fingerprint: String,
    /// For each group, the values in the order of the catalogue.
    pub values: Vec<Vec<Kept>>,
    /// What a planner should look at.
    pub alerts: Vec<Seen>,
}

/// A value as kept: a number, undefined, or censored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Kept {
    /// A number, or undefined.
    Value(Option<f64>),
    /// A quantile that tasks whose end was never seen reach.
    Censored(Censored),
}

/// The word for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Censored {
    /// It is censored.
    Censored,
}

/// An alert as kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// What kind of finding.
    pub alert: String,
    /// The tenant class.
    pub tenant: String,
    /// The server class.
    pub server: String,
    /// How many cases.
    pub count: u64,
    /// The worst original value.
    pub worst: Option<f64>,
    /// What that is.
    pub worst_is: String,
}

/// A hash of everything that a scenario's replications follow from.
pub fn scenario_key(scenario: &Scenario) -> u64 {
    let mut bare = scenario.clone();
    bare.objective.clear();
    bare.run.replications = Count(1);
    bare.run.confidence = Confidence(0.95);
    bare.hash()
}

impl Unit {
    /// What is kept of a replication of the scenario with key `scenario`.
    pub fn new(scenario: u64, replication: &Replication, alerts: &[Alert]) -> Self {
        let kept = |value: &Option<f64>| match value {
            Some(x) if x.is_nan() => Kept::Censored(Censored::Censored),
            value => Kept::Value(*value),
        };
        let seen = |a: &Alert| Seen {
            alert: a.alert.into(),
            tenant: a.tenant.clone(),
            server: a.server.clone(),
            count: a.count,
            worst: a.worst,
            worst_is: a.worst_is.into(),
        };
        Unit {
            version: VERSION.into(),
            scenario: format!("{scenario:016x}"),
            replication: replication.number,
            fingerprint: format!("{:016x}", replication.fingerprint),
            values: replication
                .values
                .iter()
                .map(|group| group.iter().map(kept).collect())
                .collect(),
            alerts: alerts.iter().map(seen).collect(),
        }
    }

    /// A run that did not get on.
    pub fn undefined(scenario: u64, replication: u32, groups: usize) -> Self {
        Unit::new(scenario, &Replication::undefined(replication, groups), &[])
    }

    /// The replication again; its counts over the whole run are not kept.
    pub fn replication(&self) -> Replication {
        let value = |kept: &Kept| match kept {
            Kept::Value(value) => *value,
            Kept::Censored(_) => Some(f64::NAN),
        };
        Replication {
            number: self.replication,
            values: self
                .values
                .iter()
                .map(|group| group.iter().map(value).collect())
                .collect(),
            fingerprint: u64::from_str_radix(&self.fingerprint, 16).unwrap_or(0),
            totals: Totals::default(),
        }
    }
}

impl Store {
    /// A folder, which need not be there yet.
    pub fn new(folder: &Path) -> Self {
        Store {
            folder: folder.to_path_buf(),
        }
    }

    /// Where the units lie.
    fn units(&self) -> PathBuf {
        self.folder.join("units")
    }

    fn place(&self, scenario: u64, replication: u32) -> PathBuf {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.eat(VERSION.as_bytes());
        // Another catalogue has other columns.
        catalogue::names()
            .iter()
            .for_each(|name| hash.eat(name.as_bytes()));
        hash.eat(&scenario.to_le_bytes());
        hash.eat(&replication.to_le_bytes());
        self.units().join(format!("{:016x}.json", hash.0))
    }

    /// Keeps a unit.
    ///
    /// # Errors
    /// What the system says where it cannot be written.
    pub fn keep(&self, scenario: u64, unit: &Unit) -> io::Result<()> {
        let text = serde_json::to_vec(unit)?;
        write_whole(&self.place(scenario, unit.replication), &text)
    }

    /// The unit of a replication with values of so many groups; `None` where there is none, or none that can be trusted.
    pub fn find(&self, scenario: u64, replication: u32, groups: usize) -> Option<Unit> {
        let text = fs::read(self.place(scenario, replication)).ok()?;
        let unit: Unit = serde_json::from_slice(&text).ok()?;
        let right = unit.version == VERSION
            && unit.scenario == format!("{scenario:016x}")
            && unit.replication == replication
            && unit.values.len() == groups
            && u64::from_str_radix(&unit.fingerprint, 16).is_ok()
            && unit
                .values
                .iter()
                .all(|group| group.len() == catalogue::names().len());
        right.then_some(unit)
    }

    /// Takes over all units of another folder that are not here yet, and gives their number.
    ///
    /// # Errors
    /// What the system says where the other folder cannot be read, or this one not written.
    pub fn take_over(&self, other: &Path) -> io::Result<u64> {
        let mut taken = 0;
        for entry in fs::read_dir(other.join("units"))? {
            let from = entry?.path();
            let Some(name) = from
                .file_name()
                .filter(|_| from.extension().is_some_and(|e| e == "json"))
            else {
                continue;
            };
            let whole = |file: &Path| {
                let text = fs::read(file).ok()?;
                let unit: Unit = serde_json::from_slice(&text).ok()?;
                (unit.version == VERSION).then_some(text)
            };
            let to = self.units().join(name);
            // What is damaged here gives way, and what is damaged there is left where it is.
            if whole(&to).is_none()
                && let Some(text) = whole(&from)
            {
                write_whole(&to, &text)?;
                taken += 1;
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(replication: u32) -> Unit {
        let names = catalogue::names().len();
        let mut values = vec![None; names];
        (values[0], values[1], values[2]) = (Some(0.1 + 0.2), Some(f64::NAN), Some(1e-300));
        let replication = Replication {
            number: replication,
            values: vec![values],
            fingerprint: u64::MAX,
            totals: Totals::default(),
        };
        Unit::new(7, &replication, &[])
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert_eq!(store.find(7, 3, 1), None);
        store.keep(7, &unit(3)).unwrap();
        let back = store.find(7, 3, 1).unwrap();
        assert_eq!(back, unit(3));
        let values = &back.replication().values[0];
        assert_eq!(values[0].map(f64::to_bits), Some((0.1f64 + 0.2).to_bits()));
        assert!(values[1].is_some_and(f64::is_nan) && values[3].is_none());
        assert_eq!(back.replication().fingerprint, u64::MAX);
    }

    #[test]
    fn a_unit_of_another_scenario_or_version_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let other = Unit {
            version: "0.0.1".into(),
            ..unit(0)
        };
        store.keep(7, &other).unwrap();
        assert_eq!(store.find(7, 0, 1), None, "another version");
        assert_eq!(store.find(8, 0, 1), None, "another scenario");
        fs::write(store.place(7, 1), b"{\"version\":").unwrap();
        assert_eq!(store.find(7, 1, 1), None, "half a file");
    }

    #[test]
    fn objectives_and_replications_do_not_change_what_a_unit_is() {
        let parse = |more: &str| {
            let text = format!("{}\n{more}", crate::experiment::tests::SMALL);
            crate::scenario::parse("test", &text, &["run.replications=9".into()])
                .unwrap()
                .scenario
        };
        let bare = crate::scenario::parse("test", crate::experiment::tests::SMALL, &[])
            .unwrap()
            .scenario;
        let judged = parse("[[objective]]\nmetric = \"tasks\"\nmin = 1");
        assert_eq!(scenario_key(&bare), scenario_key(&judged));
        let other = crate::scenario::parse(
            "test",
            crate::experiment::tests::SMALL,
            &["run.seed=9".into()],
        );
        assert_ne!(scenario_key(&bare), scenario_key(&other.unwrap().scenario));
    }
}
