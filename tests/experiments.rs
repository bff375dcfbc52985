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

/// Runs an experiment and compares what a document shows of it.
fn compare(name: &str, figures: &[&str]) {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .current_dir(root())
        .args(["sweep", &format!("experiments/{name}.toml"), "--quiet"])
        .arg("--out")
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let committed: PathBuf = root().join("docs/experiments").join(name);
    let made = shown(out.path());
    if std::env::var_os("POLLPACE_WRITE_DOCS").is_some() {
        let _ = fs::remove_dir_all(&committed);
        fs::create_dir_all(&committed).unwrap();
        for file in &made {
            fs::copy(out.path().join(file), committed.join(file)).unwrap();
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
        let (new, old) = (
            fs::read(out.path().join(&file)),
            fs::read(committed.join(&file)),
        );
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

#[test]
fn floor_and_ceiling_for_a_mixed_fleet() {
    compare(
        "floor-and-ceiling",
        &["trade-off", "floor-ceiling-map", "curves"],
    );
}

#[test]
fn ceiling_against_shutdown() {
    compare("ceiling-against-shutdown", &["curves", "abort-latency"]);
}

#[test]
fn herd() {
    compare("herd", &["curves"]);
}
