//! W1 on NeXosim, on one thread: a model per server and, before each, one that holds the server's tasks. Ports connect them; a delay is an event that
//! a model schedules for itself.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use nexosim::model::{Context, Model, SchedulableId, schedulable};
use nexosim::ports::{EventSource, Output};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use w1_peers::{DELAY, Outcome, SECOND, SERVERS, SERVICE, duration, gap, interval, server, tasks};

/// Models hand over what they saw when they are dropped: the simulation owns them.
static OUTCOME: Mutex<Outcome> = Mutex::new(Outcome {
    polls: 0,
    latencies: Vec::new(),
});

fn now<M: Model>(context: &Context<M>) -> u64 {
    let time = context.time();
    time.as_secs() as u64 * SECOND + u64::from(time.subsec_nanos())
}

/// Schedules an event of the model itself.
fn after<M: Model, T: Send + Clone + 'static>(
    context: &Context<M>,
    delay_ns: u64,
    event: &SchedulableId<M, T>,
    argument: T,
) {
    let delay = Duration::from_nanos(delay_ns);
    context
        .schedule_event(delay, event, argument)
        .expect("a delay is not zero");
}

/// A task that has been created.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Task {
    end: u64,
    polls: u32,
}

/// The tasks of one server, and their loops.
#[derive(Serialize, Deserialize)]
struct Hosts {
    polls: Output<(u32, u64)>,
    /// Task and time of each arrival.
    to_come: VecDeque<(u32, u64)>,
    alive: HashMap<u32, Task>,
    latencies: Vec<u64>,
}

#[Model]
impl Hosts {
    fn start(&mut self, _: (), context: &Context<Self>) {
        self.wait_for_next(context);
    }

    fn wait_for_next(&mut self, context: &Context<Self>) {
        if let Some(&(_, time)) = self.to_come.front() {
            after(context, time - now(context), schedulable!(Self::create), ());
        }
    }

    #[nexosim(schedulable)]
    fn create(&mut self, _: (), context: &Context<Self>) {
        let Some((id, time)) = self.to_come.pop_front() else {
            return;
        };
        self.wait_for_next(context);
        let end = time + duration(id);
        self.alive.insert(id, Task { end, polls: 1 });
        let wait = interval(id, 0) + DELAY;
        after(context, wait, schedulable!(Self::poll), id);
    }

    /// A poll arrives at the server.
    #[nexosim(schedulable)]
    async fn poll(&mut self, id: u32) {
        let end = self.alive[&id].end;
        self.polls.send((id, end)).await;
    }

    fn answer(&mut self, (id, ended): (u32, bool), context: &Context<Self>) {
        let task = self.alive.get_mut(&id).expect("answers come to tasks");
        if ended {
            self.latencies.push(now(context) - task.end);
            self.alive.remove(&id);
            return;
        }
        let wait = interval(id, task.polls) + DELAY;
        task.polls += 1;
        after(context, wait, schedulable!(Self::poll), id);
    }
}

/// One server.
#[derive(Serialize, Deserialize)]
struct Server {
    answers: Output<(u32, bool)>,
    queue: VecDeque<(u32, u64)>,
    polls: u64,
}

#[Model]
impl Server {
    fn arrive(&mut self, poll: (u32, u64), context: &Context<Self>) {
        self.queue.push_back(poll);
        if self.queue.len() == 1 {
            after(context, SERVICE, schedulable!(Self::served), ());
        }
    }

    #[nexosim(schedulable)]
    fn served(&mut self, _: (), context: &Context<Self>) {
        self.polls += 1;
        let (id, end) = self.queue.pop_front().expect("a poll is in service");
        if !self.queue.is_empty() {
            after(context, SERVICE, schedulable!(Self::served), ());
        }
        let ended = now(context) >= end;
        after(context, DELAY, schedulable!(Self::answer), (id, ended));
    }

    #[nexosim(schedulable)]
    async fn answer(&mut self, answer: (u32, bool)) {
        self.answers.send(answer).await;
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let mut outcome = OUTCOME.lock().expect("no thread panicked");
        outcome.latencies.append(&mut self.latencies);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut outcome = OUTCOME.lock().expect("no thread panicked");
        outcome.polls += self.polls;
    }
}

/// The arrivals at each server.
fn arrivals(tasks: u32) -> Vec<VecDeque<(u32, u64)>> {
    let mut of_servers = vec![VecDeque::new(); SERVERS];
    let mut time = 0;
    for id in 0..tasks {
        time += gap(id, tasks);
        of_servers[server(id)].push_back((id, time));
    }
    of_servers
}

fn main() {
    let mut bench = SimInit::with_num_threads(1);
    let mut starts = Vec::new();
    for (number, to_come) in arrivals(tasks()).into_iter().enumerate() {
        let (at_hosts, at_server) = (Mailbox::new(), Mailbox::new());
        let mut hosts = Hosts {
            polls: Output::default(),
            to_come,
            alive: HashMap::new(),
            latencies: Vec::new(),
        };
        let mut server = Server {
            answers: Output::default(),
            queue: VecDeque::new(),
            polls: 0,
        };
        hosts.polls.connect(Server::arrive, &at_server);
        server.answers.connect(Hosts::answer, &at_hosts);
        let start = EventSource::new().connect(Hosts::start, &at_hosts);
        starts.push(start.register(&mut bench));
        bench = bench
            .add_model(hosts, at_hosts, &format!("hosts {number}"))
            .add_model(server, at_server, &format!("server {number}"));
    }
    let mut simulation = bench
        .init(MonotonicTime::EPOCH)
        .expect("the models are connected");
    for start in &starts {
        simulation.process_event(start, ()).expect("hosts start");
    }
    simulation.run().expect("the simulation comes to its end");
    drop(simulation);
    OUTCOME.lock().expect("no thread panicked").print();
}
