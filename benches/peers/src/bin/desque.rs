//! W1 on desque: boxed events with exclusive access to the state.

use std::collections::VecDeque;

use desque::serial::{Event, Simulation};
use desque::{Result, SimState};
use w1_peers::{DELAY, Outcome, SERVERS, SERVICE, duration, gap, interval, server, tasks};

#[derive(Debug, Default)]
struct Fleet {
    tasks: u32,
    created: Vec<Task>,
    /// Polls at each server, the one in service first.
    queues: Vec<VecDeque<u32>>,
    outcome: Outcome,
}

#[derive(Debug)]
struct Task {
    end: u64,
    server: usize,
    polls: u32,
    /// Its last answer tells that it has ended.
    ended: bool,
}

impl SimState<u64> for Fleet {}

type W1 = Simulation<Fleet, u64>;

#[derive(Debug)]
struct Create(u32);
#[derive(Debug)]
struct Arrive(u32);
#[derive(Debug)]
struct Served(u32);
#[derive(Debug)]
struct Answer(u32);

impl Event<Fleet, u64> for Create {
    fn execute(&mut self, simulation: &mut W1) -> Result {
        let (now, id) = (*simulation.current_time(), self.0);
        let fleet = simulation.state_mut();
        fleet.created.push(Task {
            end: now + duration(id),
            server: server(id),
            polls: 0,
            ended: false,
        });
        let tasks = fleet.tasks;
        if id + 1 < tasks {
            simulation.schedule(Create(id + 1), now + gap(id + 1, tasks))?;
        }
        simulation.schedule(Arrive(id), now + interval(id, 0) + DELAY)
    }
}

impl Event<Fleet, u64> for Arrive {
    fn execute(&mut self, simulation: &mut W1) -> Result {
        let (now, id) = (*simulation.current_time(), self.0);
        let fleet = simulation.state_mut();
        let queue = &mut fleet.queues[fleet.created[id as usize].server];
        queue.push_back(id);
        if queue.len() == 1 {
            simulation.schedule(Served(id), now + SERVICE)?;
        }
        Ok(())
    }
}

impl Event<Fleet, u64> for Served {
    fn execute(&mut self, simulation: &mut W1) -> Result {
        let (now, id) = (*simulation.current_time(), self.0);
        let fleet = simulation.state_mut();
        fleet.outcome.polls += 1;
        let task = &mut fleet.created[id as usize];
        task.polls += 1;
        task.ended = now >= task.end;
        let queue = &mut fleet.queues[task.server];
        queue.pop_front();
        if let Some(&next) = queue.front() {
            simulation.schedule(Served(next), now + SERVICE)?;
        }
        simulation.schedule(Answer(id), now + DELAY)
    }
}

impl Event<Fleet, u64> for Answer {
    fn execute(&mut self, simulation: &mut W1) -> Result {
        let (now, id) = (*simulation.current_time(), self.0);
        let fleet = simulation.state_mut();
        let task = &fleet.created[id as usize];
        if task.ended {
            fleet.outcome.latencies.push(now - task.end);
            return Ok(());
        }
        let wait = interval(id, task.polls);
        simulation.schedule(Arrive(id), now + wait + DELAY)
    }
}

fn main() {
    let tasks = tasks();
    let queues = vec![VecDeque::new(); SERVERS];
    let fleet = Fleet {
        tasks,
        queues,
        ..Fleet::default()
    };
    let mut simulation = W1::new(fleet, 0);
    simulation
        .schedule(Create(0), gap(0, tasks))
        .expect("the first arrival is not in the past");
    simulation.run().expect("no event is in the past");
    simulation.state().outcome.print();
}
