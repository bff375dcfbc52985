//! From results to the data of figures, and figures on disk.
//!
//! Beside its figures a folder has `figures.json`, the data of all of them, so that they can be drawn again without the results.

mod curves;
mod grid;
pub mod hints;
mod run;
mod sweep;

pub use grid::Grid;
pub use run::of_run;
pub use sweep::of_sweep;

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::charts::{self, Figure};
use crate::disk::write_whole;

/// The file that holds the data.
pub const FILE: &str = "figures.json";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The data as kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    figures: Vec<Figure>,
}

/// The version alone, which can be read from the data of any.
#[derive(Deserialize)]
struct Version {
    version: String,
}

/// Why the data of figures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there, or cannot be read.
    #[error(
        "{folder} holds no figures: cannot read {FILE}: {error}; name a folder that run, sweep, choose or compare wrote with --out"
    )]
    Missing {
        /// Where it was looked for.
        folder: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is not what this program writes.
    #[error("{file} is damaged: {error}; run again what made it")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// Another version of this program made it.
    #[error("{file} was made by version {found}, and this is {VERSION}: run again what made it")]
    OtherVersion {
        /// The file.
        file: String,
        /// That version.
        found: String,
    },
}

/// Figures with their SVG; those that have nothing to show are left out.
pub fn drawn(figures: &[Figure]) -> Vec<(&Figure, String)> {
    let svg = |figure| Figure::svg(figure).ok().map(|svg| (figure, svg));
    figures.iter().filter_map(svg).collect()
}

/// Writes each figure into `folder` as `NAME.svg`, with `png` also as `NAME.png`, and the data of all as [`FILE`]. Gives the names of the files; figures that have
/// nothing to show have none.
///
/// # Errors
/// The first file that could not be written; those before it are whole.
pub fn write(folder: &Path, figures: &[Figure], png: bool) -> io::Result<Vec<String>> {
    let drawn = drawn(figures);
    let mut names = Vec::new();
    let mut put = |name: String, contents: &[u8]| {
        write_whole(&folder.join(&name), contents)?;
        names.push(name);
        io::Result::Ok(())
    };
    for (figure, svg) in &drawn {
        put(format!("{}.svg", figure.name()), svg.as_bytes())?;
        if png {
            let picture = charts::png(svg).map_err(io::Error::other)?;
            put(format!("{}.png", figure.name()), &picture)?;
        }
    }
    let kept = Kept {
        version: VERSION.into(),
        figures: drawn
            .into_iter()
            .map(|(figure, _)| figure.clone())
            .collect(),
    };
    let mut text = serde_json::to_vec(&kept)?;
    text.push(b'\n');
    put(FILE.into(), &text)?;
    Ok(names)
}

/// The figures whose data lies in `folder`.
///
/// # Errors
/// [`ReadError`] where there is none, or none that can be used.
pub fn read(folder: &Path) -> Result<Vec<Figure>, ReadError> {
    let place = folder.join(FILE);
    let text = fs::read(&place).map_err(|error| ReadError::Missing {
        folder: folder.display().to_string(),
        error,
    })?;
    let file = place.display().to_string();
    let damaged = |error| ReadError::Damaged {
        file: file.clone(),
        error,
    };
    let Version { version } = serde_json::from_slice(&text).map_err(damaged)?;
    if version != VERSION {
        return Err(ReadError::OtherVersion {
            file,
            found: version,
        });
    }
    let kept: Kept = serde_json::from_slice(&text).map_err(damaged)?;
    Ok(kept.figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::{DifferenceRow, Differences};

    fn figure(rows: usize) -> Figure {
        let row = DifferenceRow {
            label: "load".into(),
            unit: "1/s".into(),
            a_mean: 0.1 + 0.2,
            b_mean: 1e-300,
            difference: (-0.3, -0.2, -0.1),
        };
        Figure::Differences(Differences {
            title: "t".into(),
            a: "a".into(),
            b: "b".into(),
            rows: vec![row; rows],
            provenance: "p".into(),
        })
    }

    #[test]
    fn what_is_kept_comes_back_and_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let names = write(folder.path(), &[figure(2), figure(0)], true).unwrap();
        assert_eq!(names, ["differences.svg", "differences.png", FILE]);
        let again = read(folder.path()).unwrap();
        assert_eq!(
            again,
            [figure(2)],
            "a figure without rows has nothing to show"
        );
        let svg = fs::read_to_string(folder.path().join("differences.svg")).unwrap();
        assert_eq!(again[0].svg().unwrap(), svg);
    }

    #[test]
    fn missing_damaged_and_foreign_data_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = || read(folder.path()).unwrap_err().to_string();
        assert!(told().contains("holds no figures"));
        fs::write(
            folder.path().join(FILE),
            "{\"version\":\"0.0.1\",\"figures\":7}",
        )
        .unwrap();
        assert!(told().contains("made by version 0.0.1"));
        let wrong = format!("{{\"version\":\"{VERSION}\",\"figures\":[{{\"figure\":\"pie\"}}]}}");
        fs::write(folder.path().join(FILE), wrong).unwrap();
        assert!(told().contains("is damaged"));
    }
}
