//! `report.html` in a real browser: Debian's chromium, without a screen, driven by `tests/browser/page.py`.

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "common/python.rs"]
mod python;

use python::{printed, python};

/// Runs the main job, and gives its page.
fn page(folder: &Path) -> String {
    printed(Command::new(env!("CARGO_BIN_EXE_pollpace")).current_dir(folder));
    fs::read_to_string(folder.join("output/report.html")).unwrap()
}

fn look(page: &Path) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/page.py");
    let mut command = python();
    command.arg(script).arg(page);
    command
}

#[test]
#[ignore = "needs chromium and Python"]
fn the_page_works_by_keyboard_and_mouse_in_narrow_windows_and_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let text = page(folder.path());
    let seen = printed(&mut look(&folder.path().join("output/report.html")));
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    let first = &seen["first"];
    let chosen = first["title"].as_str().unwrap();
    assert!(
        text.contains(&format!("<strong>Recommended: {chosen}</strong>")),
        "the page opens at {chosen}, which it does not recommend"
    );
    assert_ne!(seen["floor_moved"]["floor"], first["floor"]);
    assert_eq!(seen["floor_moved"]["ceiling"], first["ceiling"]);
    assert_ne!(seen["ceiling_moved"]["ceiling"], first["ceiling"]);
    assert_eq!(seen["ceiling_moved"]["floor"], first["floor"]);

    // The look sees what is wrong.
    for (right, wrong, told) in [
        ("\"use strict\";", "console.error(1);", "the console says"),
        ("<h1>", "<img src=\"missing.png\"><h1>", "missing.png"),
        ("max-width: 760px", "width: 760px", "scrolls sideways"),
        (
            "slider.addEventListener(\"input\"",
            "slider.addEventListener(\"x\"",
            "an arrow key",
        ),
        (
            "rect.addEventListener(\"click\"",
            "rect.addEventListener(\"x\"",
            "change nothing",
        ),
        ("sliders[i].setAttribute", "void", "the slider floor says"),
    ] {
        assert!(text.contains(right), "the page has no {right}");
        let broken = folder.path().join("broken.html");
        fs::write(&broken, text.replace(right, wrong)).unwrap();
        let output = look(&broken).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(told),
            "{wrong}: {error}"
        );
    }
}
