//! Rates and occupancies over time: what `timeseries.csv` and the figure `over-time.svg` show.

use crate::charts::over_time::{Band, Curve, OverTime, Panel};
use crate::experiment::Results;
use crate::metrics::occupancy::Occupancy;
use crate::metrics::summary::Group;
use crate::metrics::tally::WINDOW;
use crate::model::Model;
use crate::scenario::Scenario;

use super::Provenance;

/// Most windows of a group.
const WINDOWS: u64 = 10_000;

/// A group over time: means over the replications, window by window.
#[derive(Clone, Debug)]
pub struct Series {
    /// The group's name.
    pub group: String,
    /// Its windows, in order.
    pub windows: Vec<Window>,
}

/// One window of a series.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its start, s.
    pub start_s: f64,
    /// Its length, s.
    pub length_s: f64,
    /// `tasks/get` sent, 1/s.
    pub rate_per_s: f64,
    /// … in its busiest 100 ms, 1/s.
    pub peak_per_s: f64,
    /// Requests waiting; `None` for a tenant class.
    pub waiting: Option<f64>,
    /// Long polls held; `None` for a tenant class.
    pub held: Option<f64>,
    /// Loops that run after their abort.
    pub leaking: f64,
}

/// The series of every group. Windows are 1 s, or the least power of ten times it that keeps a group at 10,000 of them.
pub fn all(results: &Results, scenario: &Scenario) -> Vec<Series> {
    let model = Model::new(scenario);
    let mut cells = 10u64;
    while model.horizon / (cells * WINDOW) > WINDOWS {
        cells *= 10;
    }
    Group::all(&model)
        .into_iter()
        .zip(&results.groups)
        .map(|(group, name)| Series {
            group: name.clone(),
            windows: windows(group, results, &model, cells),
        })
        .collect()
}

/// The windows of a group, each of so many cells of 100 ms.
fn windows(group: Group, results: &Results, model: &Model, cells: u64) -> Vec<Window> {
    let n = results.replications.len().max(1) as f64;
    let own = || {
        let pairs = results.pairs.iter().enumerate();
        let own = pairs.filter(|(i, _)| group.has(*i, model.servers.len()));
        own.map(|(_, pair)| pair)
    };
    let all = results.pairs.first().map_or(0, |p| p.windows.len());
    let mut sent = vec![0u64; all];
    for pair in own() {
        let windows = pair.windows.iter().map(|n| u64::from(*n));
        sent.iter_mut().zip(windows).for_each(|(sum, n)| *sum += n);
    }
    let leaking = sum_of(own().map(|pair| &pair.leaking), all);
    let servers = match group {
        Group::Tenant(_) => None,
        Group::Server(i) => Some(&results.servers[i..=i]),
        Group::Fleet => Some(&results.servers[..]),
    };
    let waiting = servers.map(|s| sum_of(s.iter().map(|s| &s.waiting), all));
    let held = servers.map(|s| sum_of(s.iter().map(|s| &s.held), all));
    let window = |(k, sent): (usize, &[u64])| {
        let start = k as u64 * cells * WINDOW;
        let length = (model.horizon - start).min(cells * WINDOW);
        let first = k * cells as usize;
        let mean = |ns: &Vec<u64>| {
            let sum: u64 = ns[first..first + sent.len()].iter().sum();
            sum as f64 / length as f64 / n
        };
        Window {
            start_s: start as f64 / 1e9,
            length_s: length as f64 / 1e9,
            rate_per_s: sent.iter().sum::<u64>() as f64 / n / (length as f64 / 1e9),
            peak_per_s: sent.iter().max().map_or(0.0, |m| *m as f64 * 10.0 / n),
            waiting: waiting.as_ref().map(mean),
            held: held.as_ref().map(mean),
            leaking: mean(&leaking),
        }
    };
    sent.chunks(cells as usize)
        .enumerate()
        .map(window)
        .collect()
}

/// Visitor-ns of each window, over several occupancies.
fn sum_of<'o>(parts: impl Iterator<Item = &'o Occupancy>, windows: usize) -> Vec<u64> {
    let mut sum = vec![0u64; windows];
    for part in parts {
        let windows = part.per_window();
        sum.iter_mut().zip(windows).for_each(|(s, n)| *s += n);
    }
    sum
}

/// The figure of a run: rate and queue of each server class over time, the fixed outages of the scenario shaded.
pub fn figure(series: &[Series], scenario: &Scenario, provenance: &Provenance) -> OverTime {
    let servers = || series.iter().filter(|s| s.group.starts_with("server."));
    let curve = |value: fn(&Window) -> f64| -> Vec<Curve> {
        let points = |s: &Series| s.windows.iter().map(|w| (w.start_s, value(w))).collect();
        let curves = servers().map(|s| Curve {
            label: s.group.trim_start_matches("server.").to_string(),
            points: points(s),
        });
        curves.collect()
    };
    let mut bands: Vec<Band> = scenario
        .server
        .iter()
        .flat_map(|s| s.outage.iter().flat_map(|o| &o.windows))
        .map(|w| Band {
            from_s: w.from.0 as f64 / 1e9,
            to_s: w.from.0.saturating_add(w.length.0.0) as f64 / 1e9,
        })
        .collect();
    bands.dedup();
    OverTime {
        title: scenario.title.clone(),
        panels: vec![
            Panel {
                label: "tasks/get rate (1/s)".into(),
                curves: curve(|w| w.rate_per_s),
            },
            Panel {
                label: "requests waiting".into(),
                curves: curve(|w| w.waiting.unwrap_or(0.0)),
            },
        ],
        bands,
        provenance: provenance.line(),
    }
}
