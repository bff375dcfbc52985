//! Times in words, and as ticks.

use super::axis::{Axis, short};
use crate::report::format;

/// Units of time, ms.
const UNITS: [(f64, &str); 5] = [
    (8.64e7, "d"),
    (3.6e6, "h"),
    (6e4, "min"),
    (1e3, "s"),
    (1.0, "ms"),
];

/// A time in the largest unit that it has one of.
pub(super) fn time(ms: f64) -> String {
    if ms >= 3.6525e2 * 8.64e7 * 10.0 {
        return format!("{} years", short((ms / (365.25 * 8.64e7)).round()));
    }
    let (size, unit) = UNITS
        .into_iter()
        .find(|(size, _)| ms >= *size)
        .unwrap_or((1.0, "ms"));
    let rounded = ((ms / size) * 100.0).round() / 100.0;
    format!(
        "{} {unit}",
        format::number(Some(if rounded > 0.0 { rounded } else { ms / size }))
    )
}

/// Times with their words.
pub(super) fn times(values: &[f64]) -> Vec<(f64, String)> {
    values.iter().map(|v| (*v, time(*v))).collect()
}

/// Round times on an axis, as many as fit.
pub(super) fn time_ticks(axis: &Axis) -> Vec<(f64, String)> {
    let all = [
        0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 6e4, 6e5, 3.6e6, 3.6e7, 8.64e7, 8.64e8, 8.64e9,
    ];
    let fine = [
        20.0, 50.0, 200.0, 500.0, 2e3, 5e3, 2e4, 3e4, 1.2e5, 3e5, 1.8e6,
    ];
    let fits = |ticks: &[f64]| {
        ticks
            .windows(2)
            .all(|p| (axis.at(p[0]) - axis.at(p[1])).abs() >= 20)
    };
    let mut both: Vec<f64> = all
        .iter()
        .chain(&fine)
        .copied()
        .filter(|v| axis.has(*v))
        .collect();
    both.sort_by(f64::total_cmp);
    if fits(&both) {
        return times(&both);
    }
    let inside: Vec<f64> = all.into_iter().filter(|v| axis.has(*v)).collect();
    let step = (1..).find(|step| fits(&inside.iter().step_by(*step).copied().collect::<Vec<_>>()));
    times(
        &inside
            .into_iter()
            .step_by(step.unwrap_or(1))
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        let told = [0.0, 0.5, 20.0, 1500.0, 9e4, 3.6e6, 2_147_483_647.0, 4.6e15].map(time);
        assert_eq!(
            told,
            [
                "0 ms",
                "0.5 ms",
                "20 ms",
                "1.5 s",
                "1.5 min",
                "1 h",
                "24.86 d",
                "145,765 years"
            ]
        );
    }

    #[test]
    fn ticks_of_time_are_those_that_fit() {
        let words =
            |axis: Axis| -> Vec<String> { time_ticks(&axis).into_iter().map(|t| t.1).collect() };
        assert_eq!(
            words(Axis::log((400.0, 4000.0), (150, 0))),
            ["500 ms", "1 s", "2 s"]
        );
        assert_eq!(
            words(Axis::log((0.5, 3e9), (150, 0))),
            ["1 ms", "100 ms", "10 s", "10 min", "10 h", "10 d"]
        );
    }
}
