//! What a fit shows on the terminal.

use std::fmt::Write;

use comfy_table::Table;

use super::Log;
use super::event::{Method, Outcome};
use super::fitted::{Fitted, Server, Tenant};
use super::pacing::{Jitter, Pacing};
use super::scenario::Choice;
use super::summary::{first_words, jitter_words, notes};
use crate::policy::HintClass;
use crate::report::format::number;
use crate::report::table::{align_numbers, plain_table};

/// Tenants and servers that have lines of their own; `fit.json` has all.
const SHOWN: usize = 5;

/// The table, the policies, the lines that could not be read, and the notes.
pub fn text(log: &Log, fitted: &Fitted, choice: &Choice) -> String {
    let mut table = plain_table();
    counts(&mut table, log, fitted);
    for tenant in fitted.tenants.iter().take(SHOWN) {
        let label = format!("completion latency of {}, mean (ms)", tenant.name);
        table.add_row([label, latency(tenant)]);
    }
    for server in fitted.servers.iter().take(SHOWN) {
        table.add_row([format!("hints of {}", server.name), hints(server)]);
    }
    align_numbers(&mut table);
    let mut out = format!("{table}\n");
    for tenant in fitted.tenants.iter().take(SHOWN) {
        if let Some(pacing) = &tenant.pacing {
            let _ = writeln!(out, "policy of {}: {}", tenant.name, words(pacing));
        }
    }
    if fitted.tenants.len().max(fitted.servers.len()) > SHOWN {
        out += "the first five tenants and servers; all of them are in fit.json\n";
    }
    for (reason, of) in &log.unread {
        let lines = if of.count == 1 { "line" } else { "lines" };
        let _ = writeln!(
            out,
            "not read: {} {lines}, first {}:{}, which {}",
            of.count,
            of.path.display(),
            of.line,
            reason.text()
        );
    }
    for note in notes(log, fitted, choice) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn counts(table: &mut Table, log: &Log, fitted: &Fitted) {
    let sum = |of: fn(&Tenant) -> u64| fitted.tenants.iter().map(of).sum::<u64>() as f64;
    let mut row = |label: &str, value: f64| {
        table.add_row([label.to_string(), number(Some(value))]);
    };
    row("lines", log.lines() as f64);
    row("… that could not be read", log.unread_lines() as f64);
    row("span (s)", fitted.span_s);
    row("tasks", log.collector.tasks.len() as f64);
    row("tasks/get", log.collector.polls() as f64);
    row("tasks/get rate, mean (1/s)", fitted.rate_per_s());
    let windows = &log.collector.windows;
    let label = format!("… peak of its {} s windows (1/s)", windows.width_s);
    row(&label, windows.peak_per_s());
    let [too_many, unavailable, others] = refused_polls(log);
    row("tasks/get refused with 429", too_many as f64);
    row("… with 503", unavailable as f64);
    row("… otherwise", others as f64);
    row("… not answered", sum(|t| t.unanswered));
    row("durations known exactly", sum(|t| t.observed.exactly));
    row("… between two polls", sum(|t| t.observed.between));
    row("… longer than seen", sum(|t| t.observed.beyond));
    row(
        "… of tasks under way at the start",
        sum(|t| t.observed.under_way),
    );
    row("aborts", sum(Tenant::aborts));
    row("leaked polls", sum(|t| t.leaked));
}

fn latency(tenant: &Tenant) -> String {
    match tenant.latency.mean_ms() {
        Some((least, most)) if least < most => {
            format!("{} to {}", number(Some(least)), number(Some(most)))
        }
        mean => number(mean.map(|(least, _)| least)),
    }
}

fn hints(server: &Server) -> String {
    let counts = server.hints.counts();
    let shown = |class: &HintClass| {
        let count = counts.classes[*class as usize];
        (count > 0).then(|| format!("{} {}", class.name(), number(Some(count as f64))))
    };
    let shown: Vec<String> = HintClass::ALL.iter().filter_map(shown).collect();
    shown.join(", ")
}

/// Polls refused, as (429, 503, others).
fn refused_polls(log: &Log) -> [u64; 3] {
    let mut refused = [0; 3];
    for ((method, outcome, ..), of) in &log.collector.refusals {
        if *method == Method::Get {
            let at = match outcome {
                Outcome::Http(429) => 0,
                Outcome::Http(503) => 1,
                _ => 2,
            };
            refused[at] += of.count;
        }
    }
    refused
}

/// A policy in words.
fn words(pacing: &Pacing) -> String {
    let ms = |x: f64| format!("{} ms", number(Some(x)));
    let mut words = vec![format!("first poll {}", first_words(pacing.first_poll))];
    match pacing.steps_ms.as_slice() {
        [first, .., last] => words.push(format!("waits from {} to {}", ms(*first), ms(*last))),
        _ if pacing.uses_hints => words.push(format!("hints used, else {}", ms(pacing.default_ms))),
        _ => words.push(format!("every {}", ms(pacing.default_ms))),
    }
    words.extend(pacing.floor_ms.map(|x| format!("floor {}", ms(x))));
    words.extend(pacing.ceiling_ms.map(|x| format!("ceiling {}", ms(x))));
    if pacing.jitter != Jitter::None {
        words.push(format!("jitter {}", jitter_words(pacing.jitter)));
    }
    if pacing.fixed_rate {
        words.push("at a fixed rate".into());
    }
    words.push(format!("explains {:.0} %", 100.0 * pacing.explained));
    words.join(", ")
}
