//! A Python with what the tests need, `notebooks/requirements.txt` and `tests/python/requirements.txt`: that of `POLLPACE_PYTHON`, or the one that
//! `.ci/run` installs below `target/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn python() -> Command {
    let given = std::env::var_os("POLLPACE_PYTHON").map(PathBuf::from);
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin/python");
    let python = given.unwrap_or(installed);
    assert!(
        python.is_file(),
        "there is no {}: .ci/run installs it, or set POLLPACE_PYTHON to a Python with notebooks/requirements.txt and tests/python/requirements.txt",
        python.display()
    );
    Command::new(python)
}

/// What a command printed, if it succeeded.
#[track_caller]
pub fn printed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{command:?}\n{out}\n{err}");
    out.into_owned()
}
