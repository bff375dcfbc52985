//! What the benches run: the yardstick and its variants, the hold model of queues, a small sweep.

use std::path::Path;

use pollpace::engine::queue::{Event, Kind, Queue, Step, order};
use pollpace::experiment::plan::{Experiment, Plan};
use pollpace::experiment::sweep::Watch;
use pollpace::model::Model;
use pollpace::scenario::{self, Scenario};

/// A scenario of models/, with overrides.
pub fn load(file: &str, overrides: &[String]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("models")
        .join(file);
    match scenario::load(&path, overrides) {
        Ok(loaded) => loaded.scenario,
        Err(wrong) => panic!("{wrong}"),
    }
}

/// W1 with so many tasks, and with overrides.
pub fn w1(tasks: u32, overrides: &[String]) -> Model {
    let rate = f64::from(tasks) / 600.0;
    let mut all = vec![format!("tenant.agents.arrivals.poisson.rate=\"{rate}/s\"")];
    all.extend_from_slice(overrides);
    Model::new(&load("w1.toml", &all))
}

/// Servers of W1 that answer at once: no queue, so no task has to do with another.
pub fn without_queues() -> Vec<String> {
    vec!["server.store.tasks_get.service=\"0s\"".into()]
}

/// What keeps loops of W1 from polling as they like, with so many tasks: a budget that polls wait for, rate limits that refuse a few, breakers that
/// refusals open now and then, and timeouts.
pub fn under_pressure(tasks: u32) -> Vec<String> {
    // A tenth of the tasks are alive, and each polls once a second.
    let polls_per_s = f64::from(tasks) / 10.0;
    let of_server = polls_per_s / 100.0;
    let limit = of_server + 0.5 * of_server.sqrt();
    let budget = 0.95 * polls_per_s;
    let breaker = "opens = { consecutive = 2 }, open = \"3s\", held_back = \"skip\"";
    let set = [
        format!(
            "server.store.limits=[{{ per = \"server\", bucket = {{ rate = \"{limit}/s\", burst = {} }} }}]",
            of_server.ceil()
        ),
        format!(
            "budget={{ fleet = {{ rate = \"{budget}/s\", burst = {} }} }}",
            (polls_per_s / 10.0).ceil()
        ),
        format!("policy.steady.breaker={{ {breaker} }}"),
        "policy.steady.timeout=\"500ms\"".into(),
        "policy.steady.error_backoff={ initial = \"1s\", factor = 2, cap = \"20s\" }".into(),
    ];
    set.into()
}

/// The hold model: so many events are pending; again and again the first is taken, and one is put in at a random time after it.
pub struct Hold {
    queue: Queue,
    bits: u64,
}

/// The longest time that an event is put ahead of the one taken, ns.
const AHEAD: u64 = 2_000_000_000;

impl Hold {
    /// So many events pending, the buckets adapted to them.
    pub fn new(pending: u32) -> Self {
        let mut hold = Hold {
            queue: Queue::default(),
            bits: 1,
        };
        for slot in 0..pending {
            let time = hold.ahead();
            hold.push(time, slot);
        }
        hold.run(4 * pending);
        hold
    }

    /// Takes and puts so many; gives the time of the last one taken, ns.
    pub fn run(&mut self, times: u32) -> u64 {
        let mut now = 0;
        for _ in 0..times {
            let Some(event) = self.queue.pop() else {
                return now;
            };
            now = event.time;
            let time = now + self.ahead();
            self.push(time, event.slot());
        }
        now
    }

    fn push(&mut self, time: u64, slot: u32) {
        self.queue.push(Event::new(
            time,
            order(Step::Arrives, 0, slot),
            Kind::Poll,
            0,
            slot,
        ));
    }

    /// Uniform in [0, [`AHEAD`]).
    fn ahead(&mut self) -> u64 {
        // A linear congruential generator (Knuth's MMIX); its upper half is random enough here.
        self.bits = self
            .bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.bits >> 32) * AHEAD) >> 32
    }
}

/// So many floors with as many ceilings on a mixed fleet of about 1,000 tasks, or of a share of them.
pub fn sweep(values: u32, replications: u32, share: f64) -> Plan {
    let axis = |name: &str, step_ms: u32| {
        let values: Vec<String> = (1..=values)
            .map(|k| format!("\"{}ms\"", k * step_ms))
            .collect();
        format!(
            "[[axis]]\nname = \"{name}\"\npath = \"policy.envelope.{name}\"\nvalues = [{}]\n",
            values.join(", ")
        )
    };
    let text = format!(
        "scenario = \"mixed-fleet.toml\"\nreplications = {replications}\nset = [\"run.horizon=4min\", \"tenant.agents.count={}\", \"tenant.pipelines.count={}\"]\n{}{}",
        (50.0 * share).ceil(),
        (10.0 * share).ceil(),
        axis("floor", 50),
        axis("ceiling", 1000),
    );
    let read = scenario::read::<Experiment>("sweep", &text);
    let experiment = read.unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::new("sweep", experiment, |overrides| {
        Ok(load("mixed-fleet.toml", overrides))
    });
    plan.unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// No one looks at a sweep.
pub struct Unwatched;

impl Watch for Unwatched {
    fn plan(&self, _: u64) {}
    fn done(&self) {}
}
