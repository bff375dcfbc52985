//! W1 on odem-rs: an asynchronous behaviour per task, a facility per server. Its time is seconds in floating point.

use std::cell::{Cell, RefCell};

use odem_rs::prelude::*;
use w1_peers::{DELAY, Outcome, SERVERS, SERVICE, duration, gap, interval, server};

#[derive(Config, Default)]
#[time(Time<f64>)]
struct Fleet {
    tasks: Cell<u32>,
    servers: Vec<Facility>,
    outcome: RefCell<Outcome>,
}

fn seconds(ns: u64) -> Time<f64> {
    second::new(ns as f64 * 1e-9)
}

struct Task(u32);

impl Behavior<Fleet> for Task {
    type Output = ();

    async fn actions(&self, sim: &Sim<Fleet>) {
        let (id, fleet) = (self.0, sim.global());
        let store = &fleet.servers[server(id)];
        let end = sim.now() + seconds(duration(id));
        for poll in 0.. {
            sim.advance(seconds(interval(id, poll) + DELAY)).await;
            let turn = store.seize().await;
            sim.advance(seconds(SERVICE)).await;
            turn.release();
            fleet.outcome.borrow_mut().polls += 1;
            let ended = sim.now() >= end;
            sim.advance(seconds(DELAY)).await;
            if ended {
                let latency_ns = (sim.now() - end).value * 1e9;
                let latencies = &mut fleet.outcome.borrow_mut().latencies;
                latencies.push(latency_ns as u64);
                return;
            }
        }
    }
}

#[odem_rs::main(Fleet { tasks, servers, outcome })]
async fn simulate(
    sim: &Sim<Fleet>,
    tasks: Cell<u32>,
    servers: Vec<Facility>,
    outcome: RefCell<Outcome>,
) -> Outcome {
    let fleet = sim.global();
    let tasks = fleet.tasks.get();
    for id in 0..tasks {
        sim.advance(seconds(gap(id, tasks))).await;
        sim.spawn(Task(id));
    }
    while fleet.outcome.borrow().latencies.len() < tasks as usize {
        sim.advance(second::new(10.0)).await;
    }
    fleet.outcome.take()
}

fn main() {
    let servers = (0..SERVERS).map(|_| Facility::default()).collect();
    simulate(Cell::new(w1_peers::tasks()), servers, RefCell::default()).print();
}
