//! `docs/metrics.md` is the catalogue, written out.

use std::fmt::Write;

use pollpace::catalogue;

fn metrics_page() -> String {
    let mut page = String::from(
        "# Metrics\n\nEvery metric has a row for every group: `fleet`, `tenant.NAME`, `server.NAME`. One without a sample is undefined, never zero. \
         [model.md](model.md) says what is counted when.\n\n| metric | what it is |\n| --- | --- |\n",
    );
    for (name, doc) in catalogue::SCALARS {
        let _ = writeln!(page, "| `{name}` | {doc} |");
    }
    page.push_str("\n## Worst hints\n\nWhat the fleet would do on the day that every server suggests the same. They take runs of their own, and are defined only where an objective, the cost or `show` asks for them, and at a recommended cell.\n\n| metric | with every hint | what it is then |\n| --- | --- | --- |\n");
    for worst in catalogue::WORST_HINTS {
        let hints = match worst.extreme {
            catalogue::Extreme::Zero => "0",
            catalogue::Extreme::Huge => "2^31 - 1 ms",
        };
        let _ = writeln!(page, "| `{}` | {hints} | `{}` |", worst.name, worst.of);
    }
    let _ = writeln!(
        page,
        "\n## Distributions\n\nEach has {}: `completion_latency_p99_ms`, `completion_latency_count`.\n\n| stem | unit | what it is |\n| --- | --- | --- |",
        catalogue::STATISTICS.map(|s| format!("`{s}`")).join(", ")
    );
    for d in catalogue::DISTRIBUTIONS {
        let unit = if d.unit.is_empty() { "" } else { "ms" };
        let _ = writeln!(page, "| `{}` | {unit} | {} |", d.name, d.doc);
    }
    page
}

#[test]
fn the_page_of_metrics_is_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    let page = metrics_page();
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == page,
        "docs/metrics.md is out of date: run the test with POLLPACE_WRITE_DOCS=1"
    );
}
