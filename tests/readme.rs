//! The README's commands work as they stand there.

use std::path::Path;
use std::process::Command;

/// The lines of the README's `sh` blocks.
fn commands() -> Vec<String> {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let mut commands = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => commands.push(line.to_string()),
            _ => {}
        }
    }
    commands
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn every_command_of_the_readme_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = tempfile::tempdir().unwrap();
    for folder in ["models", "experiments"] {
        copy(&root.join(folder), &here.path().join(folder));
    }
    let commands = commands();
    // Cargo's own are what builds and runs this very test, and the main job has a test of its own.
    let own: Vec<&String> = commands
        .iter()
        .filter(|c| c.starts_with("pollpace "))
        .collect();
    let cargo: Vec<&String> = commands
        .iter()
        .filter(|c| !c.starts_with("pollpace "))
        .collect();
    assert_eq!(
        cargo,
        [
            "cargo run --release",
            "cargo test",
            "cargo install --path ."
        ]
    );
    assert!(own.len() >= 6);
    for command in own {
        let args = command
            .split_whitespace()
            .map(|word| word.trim_matches('\''))
            .skip(1);
        let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
            .args(args)
            .current_dir(here.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{command}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
