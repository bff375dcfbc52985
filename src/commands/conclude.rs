//! What `sweep`, `merge` and `choose` end with: tables, figures, the decision, its pages.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use pollpace::charts::Figure;
use pollpace::disk::{write_piecewise, write_whole};
use pollpace::experiment::cost::Cost;
use pollpace::experiment::decision::{Decision, decide};
use pollpace::experiment::plan::Plan;
use pollpace::experiment::store::Store;
use pollpace::experiment::sweep::{CellResult, Watch};
use pollpace::report::decision::{Page, Picture};
use pollpace::report::{Provenance, advice, figures, page, sweep as report};
use pollpace::scenario::written::Objective;

use super::{DONE, INTERRUPTED, NOT_MET, print};

/// The results of a sweep, and what they are asked.
pub struct Conclusion<'a> {
    pub plan: &'a Plan,
    pub cells: Vec<CellResult>,
    pub objectives: &'a [Objective],
    pub cost: &'a Cost,
    pub provenance: Provenance,
    /// What makes it again.
    pub commands: Vec<String>,
    /// Where units are kept.
    pub store: &'a Store,
    /// Where files are written.
    pub out: &'a Path,
    /// Are figures written as PNG, too?
    pub png: bool,
}

/// What is printed.
#[derive(Clone, Copy, PartialEq)]
pub enum Told {
    /// All cells and the recommendation.
    Sweep,
    /// What stands behind the choice.
    Choice,
    /// Nothing.
    Nothing,
}

impl Conclusion<'_> {
    /// Decides, writes the files, prints, and gives the exit code.
    pub fn conclude(
        mut self,
        stop: &AtomicBool,
        watch: &impl Watch,
        told: Told,
    ) -> anyhow::Result<u8> {
        let decision = self.decide(stop, watch);
        // The tables are kept whatever comes of the decision.
        let tables = self.write_tables();
        let decision = decision?;
        if stop.load(Ordering::Relaxed) {
            tell!(
                "interrupted; what is finished is kept, and the same command goes on with the rest"
            );
            return Ok(INTERRUPTED);
        }
        let written = tables.and_then(|names| self.write(names, decision.as_ref()));
        let (plan, cells) = (self.plan, &self.cells);
        let text = match (told, &decision) {
            (Told::Nothing, _) => String::new(),
            (Told::Choice, Some(decision)) => {
                advice::of_choice(plan, cells, decision, &self.provenance)
            }
            (_, decision) => advice::of_sweep(plan, cells, decision.as_ref(), &self.provenance),
        };
        print(text.as_bytes())?;
        let names = written.context("the results could not be kept")?;
        if told != Told::Nothing {
            tell!("wrote {} in {}", names.join(", "), self.out.display());
        }
        Ok(match &decision {
            Some(decision) if decision.chosen.is_none() => NOT_MET,
            None if cells.iter().any(|cell| !cell.whole) => NOT_MET,
            _ => DONE,
        })
    }

    /// The decision, if there are objectives and all cells are there. What is run for it of the chosen cell stands in the results of that cell.
    fn decide(
        &mut self,
        stop: &AtomicBool,
        watch: &impl Watch,
    ) -> anyhow::Result<Option<Decision>> {
        if self.objectives.is_empty() || self.cells.iter().any(|cell| !cell.whole) {
            return Ok(None);
        }
        let tools = (self.store, stop, watch);
        let decision = decide(self.plan, &self.cells, self.objectives, self.cost, tools)?;
        if let Some(chosen) = &decision.chosen {
            self.cells[chosen.cell.number] = chosen.cell.clone();
        }
        Ok(Some(decision))
    }

    /// Writes `cells.csv` and `results.csv`, and gives their names.
    fn write_tables(&self) -> anyhow::Result<Vec<String>> {
        let (plan, cells, provenance) = (self.plan, &self.cells, &self.provenance);
        let of_cells = report::cells_csv(plan, cells, provenance);
        write_whole(&self.out.join("cells.csv"), &of_cells)?;
        write_piecewise(&self.out.join("results.csv"), |file| {
            report::results_csv(plan, cells, provenance, file)
        })?;
        Ok(["cells.csv", "results.csv"].map(String::from).to_vec())
    }

    /// Writes the other files, and gives the names of all.
    fn write(
        &self,
        mut names: Vec<String>,
        decision: Option<&Decision>,
    ) -> anyhow::Result<Vec<String>> {
        let (plan, cells, provenance) = (self.plan, &self.cells, &self.provenance);
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let chosen = match decision {
            Some(decision) => decision.chosen.as_ref().map(|c| c.cell.number),
            None => None,
        };
        let figures = figures::of_sweep(plan, cells, self.objectives, chosen, provenance);
        let picture = |(figure, svg): (&Figure, String)| Picture {
            file: format!("{}.svg", figure.name()),
            caption: figure.caption().into(),
            svg,
        };
        let pictures: Vec<Picture> = figures::drawn(&figures).into_iter().map(picture).collect();
        if let Some(decision) = decision {
            let commands = self.commands.clone();
            let text = Page::new(plan, cells, decision, pictures, commands, provenance);
            let html = page::html(&text, plan, cells, chosen)?;
            files.push(("decision.md".into(), page::markdown(&text)?.into_bytes()));
            files.push(("report.html".into(), html.into_bytes()));
        }
        for (name, contents) in &files {
            write_whole(&self.out.join(name), contents)?;
        }
        names.extend(files.into_iter().map(|(name, _)| name));
        names.extend(figures::write(self.out, &figures, self.png)?);
        Ok(names)
    }
}
