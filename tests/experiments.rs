//! The experiments that ship: each has its page and its figures under `docs/experiments`, and gives them again, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The page and the figures in a folder.
fn shown(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|n| n == "decision.md" || n.ends_with(".svg"))
        .collect();
    names.sort();
    names
}

/// Runs an experiment into a folder.
fn sweep(name: &str, out: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(root())
        .args(["sweep", &format!("experiments/{name}.toml"), "--quiet"])
        .arg("--out")
        .arg(out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

/// Compares what a document shows of an experiment with what its run gave.
fn compare(name: &str, out: &Path, figures: &[&str]) {
    let committed: PathBuf = root().join("docs/experiments").join(name);
    let made = shown(out);
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        let _ = fs::remove_dir_all(&committed);
        fs::create_dir_all(&committed).unwrap();
        for file in &made {
            fs::copy(out.join(file), committed.join(file)).unwrap();
        }
    }
    for figure in figures {
        assert!(
            made.contains(&format!("{figure}.svg")),
            "{figure}: {made:?}"
        );
    }
    assert!(made.contains(&"decision.md".to_string()));
    assert_eq!(shown(&committed), made);
    for file in made {
        let (new, old) = (fs::read(out.join(&file)), fs::read(committed.join(&file)));
        assert!(
            new.unwrap() == old.unwrap(),
            "docs/experiments/{name}/{file} is out of date: run the test with POLLPACE_WRITE_DOCS=1"
        );
    }
    // Every figure that the page shows stands beside it.
    let page = fs::read_to_string(committed.join("decision.md")).unwrap();
    for reference in page.split("](").skip(1) {
        let file = reference.split(')').next().unwrap();
        assert!(committed.join(file).exists(), "{file}");
    }
}

/// The main job: it needs no file, for it brings experiment and scenario along.
#[test]
fn floor_and_ceiling_for_a_mixed_fleet() {
    let here = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(here.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let out = here.path().join("output");
    compare(
        "floor-and-ceiling",
        &out,
        &["trade-off", "floor-ceiling-map", "curves"],
    );

    let shown = String::from_utf8(output.stdout).unwrap();
    let mut lines = shown.lines();
    let recommended = lines.find(|l| l.starts_with("Recommended: floor")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(
        readme.contains(recommended),
        "the README does not show: {recommended}"
    );
    assert!(shown.contains("What to try next") && shown.contains("Headroom"));
    let cells = fs::read_to_string(out.join("cells.csv")).unwrap();
    assert!(cells.lines().count() > 40);
    assert!(fs::metadata(out.join("report.html")).unwrap().len() > 10_000);
}

#[test]
fn ceiling_against_shutdown() {
    let out = tempfile::tempdir().unwrap();
    sweep("ceiling-against-shutdown", out.path());
    compare(
        "ceiling-against-shutdown",
        out.path(),
        &["curves", "abort-latency"],
    );
}

#[test]
fn herd() {
    let out = tempfile::tempdir().unwrap();
    sweep("herd", out.path());
    compare("herd", out.path(), &["curves"]);
}
