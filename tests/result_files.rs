//! The published schema of the result files, held against the files that the program writes.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FLEET: &str = r#"
    [run]
    horizon = "20s"
    [[server]]
    name = "near"
    [[server]]
    name = "far"
    delay = "20ms"
    [[tenant]]
    name = "t"
    arrivals = { poisson = { rate = "1/s" } }
    duration = { exponential = { mean = "5s" } }
    servers = { near = 1, far = 1 }
    policy = "p"
    [policy.p]
    default = "1s"
    [[objective]]
    metric = "completion_latency_p99_ms"
    max = 1500
"#;

const SWEEP: &str = r#"
    scenario = "fleet.toml"
    replications = 2
    [[axis]]
    name = "default"
    path = "policy.p.default"
    values = ["500ms", "1s"]
    [[axis]]
    name = "hosts"
    path = "tenant.t.count"
    values = [1, 3]
"#;

const SEARCH: &str = r#"
    scenario = "fleet.toml"
    replications = 2
    [[axis]]
    name = "default"
    path = "policy.p.default"
    values = ["500ms", "2s"]
"#;

fn pollpace(folder: &Path, arguments: &str) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_pollpace"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "pollpace {arguments}\n{told}");
    output.stdout
}

/// A value is of the type of its field.
fn fits(value: &str, field: &Value) -> bool {
    let rules = &field["constraints"];
    if value.is_empty() {
        return rules["required"] != true;
    }
    let typed = match field["type"].as_str() {
        Some("integer") => value.parse::<u64>().is_ok(),
        Some("number") => value.parse::<f64>().is_ok_and(f64::is_finite),
        Some("boolean") => value == "true" || value == "false",
        Some("string") => true,
        other => panic!("{other:?} is no type"),
    };
    let named = rules["enum"]
        .as_array()
        .is_none_or(|names| names.iter().any(|name| name == value));
    let formed = match rules["pattern"].as_str() {
        None => true,
        Some("[0-9a-f]{16}") => value.len() == 16 && u64::from_str_radix(value, 16).is_ok(),
        Some("fleet|(tenant|server)\\..+") => {
            ["fleet", "tenant.t", "server.near", "server.far"].contains(&value)
        }
        Some(other) => panic!("{other} is not known here"),
    };
    typed && named && formed
}

/// What a file has against its resource, `axes` being the columns of a sweep's parameters; how many rows it has.
fn faults(folder: &Path, resource: &Value, axes: &[&str]) -> (Vec<String>, usize) {
    let path = folder.join(resource["path"].as_str().unwrap());
    let schema = &resource["schema"];
    let fields = schema["fields"].as_array().unwrap();
    let mut expected: Vec<&str> = fields.iter().map(|f| f["name"].as_str().unwrap()).collect();
    expected.splice(1..1, axes.iter().copied());
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let head = reader.headers().unwrap().clone();
    assert_eq!(head.iter().collect::<Vec<_>>(), expected, "{path:?}");
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let key: Vec<usize> = schema["primaryKey"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| at(name.as_str().unwrap()))
        .collect();
    let (mut faults, mut keys) = (Vec::new(), HashSet::new());
    for (number, row) in (2..).zip(reader.records()) {
        let row = row.unwrap();
        for field in fields {
            let name = field["name"].as_str().unwrap();
            if !fits(&row[at(name)], field) {
                faults.push(format!("line {number}, {name}: {:?}", &row[at(name)]));
            }
        }
        let own: Vec<String> = key.iter().map(|i| row[*i].to_string()).collect();
        if !keys.insert(own) {
            faults.push(format!("line {number}: its key stands twice"));
        }
    }
    (faults, keys.len())
}

#[test]
fn the_published_schema_is_that_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    fs::write(home.join("fleet.toml"), FLEET).unwrap();
    fs::write(home.join("sweep.toml"), SWEEP).unwrap();
    fs::write(home.join("search.toml"), SEARCH).unwrap();
    pollpace(home, "sweep sweep.toml --out sweep --quiet");
    pollpace(
        home,
        "optimise search.toml --resolution 0.1 --out search --quiet",
    );
    pollpace(
        home,
        "run fleet.toml --replications 2 --set run.seed=3 --out run --quiet",
    );
    pollpace(
        home,
        "compare fleet.toml fleet.toml --set-b policy.p.default=500ms --replications 2 --out both --quiet",
    );
    pollpace(
        home,
        "policies compare fleet.toml --policy anda --replications 2 --out loops --quiet",
    );
    let package: Value = serde_json::from_slice(&pollpace(home, "schema results")).unwrap();
    let resources = package["resources"].as_array().unwrap();
    let metrics = pollpace::catalogue::names().len();
    let groups = 4;
    let axes = ["default", "hosts"];
    let cases: [(&str, &str, &[&str], Option<usize>); 8] = [
        ("cells", "sweep", &axes, Some(4)),
        ("results", "sweep", &axes, Some(4 * 2 * groups * metrics)),
        // As many as the search takes.
        ("optimum", "search", &axes[..1], None),
        ("summary", "run", &[], Some(groups * metrics)),
        ("replications", "run", &[], Some(2 * groups * metrics)),
        ("timeseries", "run", &[], Some(20 * groups)),
        ("policies", "loops", &[], Some(2 * groups * metrics)),
        ("differences", "both", &[], Some(groups * metrics)),
    ];
    assert_eq!(resources.len(), cases.len());
    for (resource, (name, of, axes, rows)) in resources.iter().zip(cases) {
        assert_eq!(resource["name"], name);
        let open = resource["schema"]["fieldsMatch"] == "subset";
        assert_eq!(open, !axes.is_empty(), "{name}");
        let (found, seen) = faults(&home.join(of), resource, axes);
        assert_eq!(found, [""; 0], "{name}");
        assert!(seen > 1 && rows.is_none_or(|rows| rows == seen), "{name}");
    }

    // It knows wrong from right.
    let cells = home.join("sweep/cells.csv");
    let text = fs::read_to_string(&cells).unwrap();
    fs::write(
        &cells,
        text.replacen("\n0,", "\n1,", 1).replace("false", "no"),
    )
    .unwrap();
    let (found, _) = faults(&home.join("sweep"), &resources[0], &axes);
    assert!(
        found.iter().any(|fault| fault.contains("stands twice")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|fault| fault.contains("chosen")),
        "{found:?}"
    );
}
