//! Rates and occupancies over time: what `timeseries.csv` and the figure `over-time.svg` show.

use crate::charts::over_time::{Band, Curve, OverTime, Panel};
use crate::experiment::Results;
use crate::metrics::occupancy::Occupancy;
use crate::metrics::summary::Group;
use crate::metrics::tally::WINDOW;
use crate::model::{FRACTION, LimitKind, Model, Per, TimeSampler};
use crate::scenario::Scenario;
use crate::scenario::distribution::Kind;
use crate::scenario::written::Time;

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

/// Points of a curve: about one for each pixel.
const POINTS: usize = 500;

/// The figure of a run: rate and queue of each server class over time, what the servers can take, the fixed outages of the scenario shaded.
pub fn figure(series: &[Series], scenario: &Scenario, provenance: &Provenance) -> OverTime {
    let servers: Vec<(&str, Vec<Window>)> = series
        .iter()
        .filter_map(|s| Some((s.group.strip_prefix("server.")?, merged(&s.windows))))
        .collect();
    let capacities = capacities(scenario);
    let points = |windows: &[Window], value: fn(&Window) -> f64| -> Vec<(f64, f64)> {
        windows.iter().map(|w| (w.start_s, value(w))).collect()
    };
    let rate = |(name, windows): &(&str, Vec<Window>)| Curve {
        label: (*name).into(),
        points: points(windows, |w| w.rate_per_s),
        peaks: points(windows, |w| w.peak_per_s),
        limit: capacities.iter().find(|c| c.0 == *name).and_then(|c| c.1),
    };
    let waiting = |(name, windows): &(&str, Vec<Window>)| Curve {
        label: (*name).into(),
        points: points(windows, |w| w.waiting.unwrap_or(0.0)),
        peaks: Vec::new(),
        limit: None,
    };
    OverTime {
        title: match scenario.title.is_empty() {
            true => "The fleet over time".into(),
            false => scenario.title.clone(),
        },
        panels: vec![
            Panel {
                label: "tasks/get rate (1/s)".into(),
                curves: servers.iter().map(rate).collect(),
            },
            Panel {
                label: "requests waiting".into(),
                curves: servers.iter().map(waiting).collect(),
            },
        ],
        bands: outages(scenario),
        provenance: provenance.line(),
    }
}

/// The fixed outages of a scenario, each once.
fn outages(scenario: &Scenario) -> Vec<Band> {
    let windows = scenario
        .server
        .iter()
        .flat_map(|s| s.outage.iter().flat_map(|o| &o.windows));
    let mut bands: Vec<Band> = windows
        .map(|w| Band {
            from_s: w.from.0 as f64 / 1e9,
            to_s: w.from.0.saturating_add(w.length.0.0) as f64 / 1e9,
        })
        .collect();
    bands.dedup();
    bands
}

/// Windows put together so that about [`POINTS`] are left: means of rates and queues, the greatest of peaks.
fn merged(windows: &[Window]) -> Vec<Window> {
    let together = windows.len().div_ceil(POINTS).max(1);
    let merge = |part: &[Window]| {
        let length: f64 = part.iter().map(|w| w.length_s).sum();
        let mean = |value: fn(&Window) -> f64| {
            part.iter().map(|w| value(w) * w.length_s).sum::<f64>() / length
        };
        Window {
            start_s: part[0].start_s,
            length_s: length,
            rate_per_s: mean(|w| w.rate_per_s),
            peak_per_s: part.iter().map(|w| w.peak_per_s).fold(0.0, f64::max),
            waiting: part[0].waiting.map(|_| mean(|w| w.waiting.unwrap_or(0.0))),
            held: part[0].held.map(|_| mean(|w| w.held.unwrap_or(0.0))),
            leaking: mean(|w| w.leaking),
        }
    };
    windows.chunks(together).map(merge).collect()
}

/// The names of the server classes, and the rate of requests that each can take for long: the least of its rate limits per server and of workers ÷ mean
/// service time, times its servers; `None` where nothing limits it.
fn capacities(scenario: &Scenario) -> Vec<(String, Option<f64>)> {
    let model = Model::new(scenario);
    let of = |server: &crate::model::ServerClass| {
        let written = scenario.server.iter().find(|s| s.name == server.name);
        let exact = written.and_then(|s| exact_mean_ns(&s.tasks_get.service));
        let service_s = exact.unwrap_or_else(|| mean_ns(&server.service)) / 1e9;
        let served = (service_s > 0.0).then(|| f64::from(server.workers) / service_s);
        let limits = server.limits.iter().filter(|l| l.per == Per::Server);
        let limited = limits.map(|l| match l.kind {
            LimitKind::Bucket(bucket) => {
                1e9 * f64::from(1u32 << FRACTION) / bucket.period.max(1) as f64
            }
            LimitKind::Quota { requests, length } => f64::from(requests) * 1e9 / length as f64,
        });
        let least = limited.chain(served).reduce(f64::min);
        (
            server.name.clone(),
            least.map(|l| l * f64::from(server.count)),
        )
    };
    model.servers.iter().map(of).collect()
}

/// The mean of an exponential time, ns, which its draws only come near.
fn exact_mean_ns(time: &Time) -> Option<f64> {
    match time.kind {
        Kind::Exponential { mean } if time.min.is_none() && time.max.is_none() => {
            Some(mean.0 as f64)
        }
        _ => None,
    }
}

/// The mean of a time, ns: over a thousand and one evenly spread draws where it is not constant.
fn mean_ns(time: &TimeSampler) -> f64 {
    if let Some(ns) = time.as_constant() {
        return ns as f64;
    }
    const DRAWS: u64 = 1001;
    let draw = |k: u64| time.draw(|| (u64::MAX / DRAWS) * k + u64::MAX / DRAWS / 2) as f64;
    (0..DRAWS).map(draw).sum::<f64>() / DRAWS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(server: &str) -> Option<f64> {
        let small = crate::experiment::tests::SMALL;
        let text = small.replace("name = \"s\"", &format!("name = \"s\"\n{server}"));
        let scenario = crate::scenario::parse("test", &text, &[]).unwrap().scenario;
        capacities(&scenario).remove(0).1
    }

    #[test]
    fn the_capacity_is_the_least_of_what_limits_a_server() {
        assert_eq!(capacity(""), None);
        assert_eq!(
            capacity("count = 3\ntasks_get = { workers = 4, service = \"2ms\" }"),
            Some(6000.0)
        );
        let both = "tasks_get = { workers = 4, service = \"2ms\" }\nlimits = [{ per = \"server\", bucket = { rate = \"50/s\", burst = 9 } }]";
        assert!((capacity(both).unwrap() - 50.0).abs() < 1e-6);
        let quota = "limits = [{ per = \"server\", quota = { requests = 30, length = \"10s\" } }, { per = \"tenant\", quota = { requests = 1, length = \"10s\" } }]";
        assert_eq!(
            capacity(quota),
            Some(3.0),
            "what each tenant has is no limit of the server"
        );
        let drawn =
            capacity("tasks_get = { service = { exponential = { mean = \"2ms\" } } }").unwrap();
        assert!((drawn - 500.0).abs() < 1e-6, "{drawn}");
        let gamma =
            capacity("tasks_get = { service = { gamma = { mean = \"2ms\", cv = 0.5 } } }").unwrap();
        assert!((gamma / 500.0 - 1.0).abs() < 0.05, "{gamma}");
    }

    #[test]
    fn merged_windows_keep_means_and_peaks() {
        let window = |k: u32| Window {
            start_s: f64::from(k),
            length_s: 1.0,
            rate_per_s: f64::from(k % 2),
            peak_per_s: f64::from(k),
            waiting: Some(2.0),
            held: None,
            leaking: 0.0,
        };
        let all: Vec<Window> = (0..1000).map(window).collect();
        let merged = merged(&all);
        assert_eq!(merged.len(), 500);
        let last = merged[499];
        assert_eq!(
            (last.start_s, last.length_s, last.rate_per_s),
            (998.0, 2.0, 0.5)
        );
        assert_eq!(
            (last.peak_per_s, last.waiting, last.held),
            (999.0, Some(2.0), None)
        );
    }
}
