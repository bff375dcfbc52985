//! Results in other hands: the notebook runs from top to bottom, and pandas, polars and DuckDB read every table as it is.

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "common/python.rs"]
mod python;

use python::{printed, python};

fn pollpace(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollpace"));
    command.current_dir(folder);
    command
}

/// The outputs of a notebook's cells, as text.
fn outputs(notebook: &Path) -> Vec<String> {
    let text = fs::read_to_string(notebook).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    cells
        .filter_map(|cell| cell.get("outputs"))
        .flat_map(|outputs| outputs.as_array().unwrap())
        .map(ToString::to_string)
        .collect()
}

#[test]
#[ignore = "needs Python"]
fn the_notebook_runs_on_the_main_job() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let shown = printed(&mut pollpace(home));
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/choose.ipynb");
    assert_eq!(
        outputs(&notebook),
        [""; 0],
        "it is committed without outputs"
    );
    printed(
        python()
            .args(["-m", "nbconvert", "--to", "notebook", "--execute"])
            .arg(&notebook)
            .arg("--output-dir")
            .arg(home)
            .env("POLLPACE_RESULTS", home.join("output")),
    );
    let outputs = outputs(&home.join("choose.ipynb"));
    assert!(outputs.iter().any(|o| o.contains("Load against freshness")));
    assert!(outputs.iter().any(|o| o.contains("The price of freshness")));
    // It speaks of the cell that the program recommends.
    let recommended = shown.split_once("Recommended: ").unwrap().1;
    let recommended = recommended.split_once(':').unwrap().0;
    let answer = format!("The choice, {}", recommended.replace(", ", " and "));
    assert!(
        outputs.iter().any(|o| o.contains(&answer)),
        "{answer}\n{}",
        outputs.last().unwrap()
    );
    assert!(outputs.iter().any(|o| o.contains("<- the choice")));
}

#[test]
#[ignore = "needs Python"]
fn pandas_polars_and_duckdb_read_every_table_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    printed(&mut pollpace(home));
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/mixed-fleet.toml");
    let run = ["--replications", "2", "--quiet", "--out", "output"];
    printed(pollpace(home).arg("run").arg(model).args(run));
    let schema = printed(pollpace(home).args(["schema", "results"]));
    fs::write(home.join("schema.json"), schema).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/tables.py");
    let told = printed(
        python()
            .current_dir(home)
            .arg(script)
            .args(["output", "schema.json"]),
    );
    for file in ["cells", "results", "summary", "replications", "timeseries"] {
        for reader in ["of_pandas", "of_polars", "of_duckdb"] {
            let line = format!("{file}.csv {reader}: ");
            assert!(told.contains(&line), "no {line}\n{told}");
        }
    }
}
