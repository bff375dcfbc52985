//! The grid of floors and ceilings that a plan may be.

use crate::experiment::plan::{Cell, Plan};
use crate::experiment::sweep::CellResult;
use crate::scenario::units::Duration;

/// The floors and ceilings of a plan whose cells are pairs of them, ascending.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The path of the policy in the scenario, such as `policy.envelope`.
    pub policy: String,
    /// The floors.
    pub floors: Vec<Duration>,
    /// The ceilings.
    pub ceilings: Vec<Duration>,
}

impl Grid {
    /// The grid of a plan; `None` where something else is varied.
    pub fn of(plan: &Plan) -> Option<Self> {
        let axes = &plan.experiment.axis;
        let path = |name: &str| {
            let axis = axes.iter().find(|a| a.name == name)?;
            axis.path
                .as_ref()?
                .strip_suffix(&format!(".{name}"))
                .map(String::from)
        };
        let policy = path("floor").filter(|p| Some(p) == path("ceiling").as_ref())?;
        if axes.len() != 2 || !plan.experiment.variant.is_empty() {
            return None;
        }
        let values = |at: usize| -> Option<Vec<Duration>> {
            let all = plan
                .cells
                .iter()
                .map(|c| Duration::parse(&c.parameters[at].1).ok());
            let mut all: Vec<Duration> = all.collect::<Option<_>>()?;
            all.sort();
            all.dedup();
            Some(all)
        };
        let floor_first = axes[0].name == "floor";
        Some(Grid {
            policy,
            floors: values(usize::from(!floor_first))?,
            ceilings: values(usize::from(floor_first))?,
        })
    }

    /// The floor and the ceiling of a cell.
    pub fn bounds(cell: &Cell) -> Option<(Duration, Duration)> {
        let value = |name: &str| {
            let (_, value) = cell.parameters.iter().find(|(n, _)| n == name)?;
            Duration::parse(value).ok()
        };
        Some((value("floor")?, value("ceiling")?))
    }

    /// The cell with a floor and a ceiling.
    pub fn cell<'c>(
        &self,
        plan: &Plan,
        cells: &'c [CellResult],
        at: (Duration, Duration),
    ) -> Option<&'c CellResult> {
        cells
            .iter()
            .find(|c| Grid::bounds(&plan.cells[c.number]) == Some(at))
    }
}
