//! An experiment file and the scenario that it names.

use std::fs;
use std::path::{Path, PathBuf};

use pollpace::experiment::plan::{Experiment, Plan};
use pollpace::scenario::{self, LoadError, Scenario};

/// An experiment file, read.
pub struct ExperimentFile {
    /// Its name without folders.
    pub name: String,
    /// As written.
    pub text: String,
    shown: String,
    scenario: PathBuf,
}

impl ExperimentFile {
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| LoadError::Io {
            path: shown.clone(),
            error,
        })?;
        let experiment: Experiment = scenario::read(&shown, &text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(ExperimentFile {
            name: path
                .file_name()
                .map_or_else(String::new, |n| n.to_string_lossy().into()),
            text,
            shown,
            scenario: folder.join(&experiment.scenario),
        })
    }

    /// Its scenario, with overrides.
    pub fn load(&self, overrides: &[String]) -> Result<Scenario, LoadError> {
        scenario::load(&self.scenario, overrides).map(|loaded| loaded.scenario)
    }

    /// Its scenario in one text.
    pub fn in_one_text(&self) -> Result<String, LoadError> {
        scenario::in_one_text(&self.scenario)
    }

    /// Its plan; warnings about the scenario are printed unless it is `quiet`.
    pub fn plan(&self, quiet: bool) -> Result<Plan, LoadError> {
        let experiment = scenario::read(&self.shown, &self.text)?;
        let warnings = scenario::load(&self.scenario, &[])?.warnings;
        let plan = Plan::new(&self.shown, experiment, |overrides| self.load(overrides))?;
        if !warnings.is_empty() && !quiet {
            tell!("{}\n", warnings.trim_end());
        }
        Ok(plan)
    }
}
