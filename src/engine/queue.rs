//! The pending events, in the exact order of their keys.
//!
//! Wide buckets: a ring of append-only buckets, each sorted once when it falls due (a counting pass by the next bits of
//! the time, then insertion). Few wide buckets keep their tails in the cache, where a heap of a million events misses it
//! at every level. A side heap takes pushes into the bucket being drained, an overflow heap what lies beyond the ring. The width
//! follows the event rate. The order is that of [`Event`]'s `Ord`, whatever the widths.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An event: when, in which order within the instant, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Simulated time, ns.
    pub time: u64,
    /// Step within the instant, member, task ordinal: see [`order`].
    pub order: u64,
    /// Kind, tag and slot, from the upper bits to the lower: what is written in one piece can be read in one piece at once.
    what: u64,
}

impl Event {
    /// What happens at `time`, in this [`order`] within the instant.
    #[inline]
    pub fn new(time: u64, order: u64, kind: Kind, tag: u16, slot: u32) -> Self {
        let what = (kind as u64) << 48 | u64::from(tag) << 32 | u64::from(slot);
        Event { time, order, what }
    }

    /// What happens.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::ALL[(self.what >> 48) as usize]
    }

    /// What tells events of one kind apart: the tenant class of a creation, else mostly the low bits of a poll's number.
    #[inline]
    pub fn tag(&self) -> u16 {
        (self.what >> 32) as u16
    }

    /// Task slot; or the member, host, limiter or breaker that the kind is about.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.what as u32
    }
}

/// What happens at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A member asks for a task.
    Create,
    /// A created task comes to a server that limits how many it executes.
    Queue,
    /// Such a server ends a task.
    TaskEnd,
    /// Such a server has served a `tasks/get`; the state is read.
    Served,
    /// Such a server has served a `tasks/cancel`.
    Cancelled,
    /// A `tasks/get` arrives at its server.
    Poll,
    /// A `tasks/result` arrives.
    Result,
    /// A `tasks/cancel` arrives.
    Cancel,
    /// A `tasks/update` is sent, or arrives.
    Update,
    /// A poll that a server holds may be answered.
    Release,
    /// The answer to a poll comes to its host.
    Answer,
    /// A notification comes to its host.
    Notice,
    /// A host starts again.
    Reconnect,
    /// A timer fires.
    Timer,
    /// The common timer of a host's loops fires.
    CommonTimer,
    /// A poll has its turn in the batch of its host.
    Turn,
    /// A host wakes up.
    WakeUp,
    /// A limiter has a token again.
    Refill,
    /// A breaker becomes half open.
    HalfOpen,
    /// A caller aborts.
    Abort,
    /// A policy's deadline.
    GiveUp,
    /// Control returns to the caller.
    Settle,
}

impl Kind {
    /// All kinds, in their order.
    const ALL: [Kind; 22] = {
        use Kind::*;
        [
            Create,
            Queue,
            TaskEnd,
            Served,
            Cancelled,
            Poll,
            Result,
            Cancel,
            Update,
            Release,
            Answer,
            Notice,
            Reconnect,
            Timer,
            CommonTimer,
            Turn,
            WakeUp,
            Refill,
            HalfOpen,
            Abort,
            GiveUp,
            Settle,
        ]
    };
}

/// The steps of an instant, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Step {
    /// Tasks are created, servers end tasks.
    Ends = 0,
    /// Service ends and the state is read.
    Reads = 1,
    /// Requests arrive at a server.
    Arrives = 2,
    /// Answers are seen. A `tasks/result` that takes no time to its server arrives in this step.
    Seen = 3,
    /// Timers fire and polls are sent. A poll that takes no time to its server arrives in this step.
    Sends = 4,
    /// Callers abort. A `tasks/cancel` that takes no time arrives in this step.
    Aborts = 5,
}

impl Step {
    /// The order of an event of this step that is otherwise that of `order`.
    #[inline]
    pub fn of(self, order: u64) -> u64 {
        (order & !(7 << 61)) | (self as u64) << 61
    }
}

/// The order of events within an instant: step, then member (classes by name), then task.
#[inline]
pub fn order(step: Step, member: u32, ordinal: u32) -> u64 {
    (step as u64) << 61 | (member as u64) << 32 | ordinal as u64
}

/// Buckets of the ring, a power of two.
const BUCKETS: usize = 1024;
/// … of a queue of many.
const BUCKETS_OF_MANY: usize = 128;
/// A bucket that falls due with more events than this is too wide.
const CROWDED: usize = 2048;
/// Buckets with fewer than this, on the average, are too narrow.
const SPARSE: usize = 64;

/// Events waiting for their time.
#[derive(Debug)]
pub struct Queue {
    /// log2 of the width in ns.
    width: u32,
    /// Number of the bucket being drained.
    current: u64,
    /// Where it ends.
    end: u64,
    ring: Vec<Vec<Event>>,
    /// Buckets of the ring, less one.
    mask: u64,
    /// Buffers of buckets that are drained, the last one on top: still in the cache when the next bucket begins.
    spare: Vec<Vec<Event>>,
    /// The bucket being drained, ascending, from `next` on.
    due: Vec<Event>,
    next: usize,
    side: Side,
    /// An event taken elsewhere.
    found: Event,
    over: BinaryHeap<Reverse<Event>>,
    len: usize,
    counts: Vec<u32>,
    /// Events that fell due since the width was last looked at, and in how many buckets.
    drained: usize,
    buckets: usize,
    side_pushes: usize,
}

/// Kinds of events that mostly come in the order in which they are pushed: each has a line of its own, where that is cheaper than sorting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Line {
    /// Arrivals of tasks.
    Creations,
    /// Polls that come to their servers after a constant delay.
    Polls,
    /// Answers that come to their hosts after a constant delay.
    Answers,
}

/// Lines, and the heap after them.
const LINES: usize = 4;

/// Events that stand in no bucket.
#[derive(Debug)]
struct Side {
    /// By [`Line`], each ascending.
    lines: [VecDeque<Event>; LINES - 1],
    heap: BinaryHeap<Reverse<Event>>,
    /// Times of the first of each line, and of the heap; [`u64::MAX`] where there are none.
    heads: [u64; LINES],
    /// Time of the last that went into each line.
    tails: [u64; LINES - 1],
    /// Time of the first of them all.
    first: u64,
    /// Where it stands; [`TIED`] where several have that time.
    place: usize,
    /// The event taken last.
    taken: Event,
    len: usize,
}

/// What stands where there is no event yet.
const NONE: Event = Event {
    time: 0,
    order: 0,
    what: 0,
};

/// No place: several are equally near.
const TIED: usize = LINES;

impl Side {
    fn push(&mut self, event: Event) {
        self.heap.push(Reverse(event));
        self.note(LINES - 1, event.time);
    }

    /// Puts an event at the end of its line, if it belongs there.
    #[inline]
    fn line_up(&mut self, line: Line, event: Event) -> bool {
        let events = &mut self.lines[line as usize];
        if event.time <= self.tails[line as usize]
            && events.back().is_some_and(|last| later(last, &event))
        {
            return false;
        }
        self.tails[line as usize] = event.time;
        events.push_back(event);
        self.note(line as usize, event.time);
        true
    }

    #[inline]
    fn note(&mut self, line: usize, time: u64) {
        self.len += 1;
        self.heads[line] = self.heads[line].min(time);
        if time < self.first {
            (self.first, self.place) = (time, line);
        } else if time == self.first && line != self.place {
            self.place = TIED;
        }
    }

    /// The first event, and where it stands.
    #[inline]
    fn peek(&self) -> Option<(&Event, usize)> {
        let front = |line: usize| match self.lines.get(line) {
            Some(line) => line.front(),
            None => self.heap.peek().map(|Reverse(event)| event),
        };
        let mut first: Option<(&Event, usize)> = None;
        for line in (0..LINES).filter(|line| self.heads[*line] == self.first) {
            if let Some(event) = front(line)
                && first.is_none_or(|(least, _)| later(least, event))
            {
                first = Some((event, line));
            }
        }
        first
    }

    /// Takes the first event, which stands there: it is then `taken`.
    fn remove(&mut self, place: usize) {
        let next = if let Some(line) = self.lines.get_mut(place) {
            if let Some(event) = line.pop_front() {
                self.taken = event;
            }
            line.front()
        } else {
            if let Some(Reverse(event)) = self.heap.pop() {
                self.taken = event;
            }
            self.heap.peek().map(|Reverse(event)| event)
        };
        self.heads[place] = next.map_or(u64::MAX, |event| event.time);
        self.len -= 1;
        (self.first, self.place) = (u64::MAX, TIED);
        for (line, head) in self.heads.into_iter().enumerate() {
            if head < self.first {
                (self.first, self.place) = (head, line);
            } else if head == self.first {
                self.place = TIED;
            }
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue::with(BUCKETS)
    }
}

impl Queue {
    /// A queue whose ring has so many buckets: a power of two.
    fn with(buckets: usize) -> Self {
        Queue {
            width: 24,
            current: u64::MAX,
            end: 0,
            ring: (0..buckets).map(|_| Vec::new()).collect(),
            mask: buckets as u64 - 1,
            spare: Vec::new(),
            due: Vec::new(),
            next: 0,
            side: Side {
                lines: Default::default(),
                heap: BinaryHeap::new(),
                heads: [u64::MAX; LINES],
                tails: [0; LINES - 1],
                first: u64::MAX,
                place: TIED,
                taken: NONE,
                len: 0,
            },
            found: NONE,
            over: BinaryHeap::new(),
            len: 0,
            counts: Vec::new(),
            drained: 0,
            buckets: 0,
            side_pushes: 0,
        }
    }

    /// One of thousands of queues, which hold few events each.
    pub fn of_many() -> Self {
        Queue::with(BUCKETS_OF_MANY)
    }

    /// A queue that holds few events at a time, whose times may start anew.
    pub fn of_few() -> Self {
        // Everything lies before the bucket being drained, and so beside it.
        Queue {
            current: 1 << 62,
            end: u64::MAX,
            ring: Vec::new(),
            mask: 0,
            ..Queue::default()
        }
    }

    /// Adds an event. It may lie in the past of no event already popped.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        self.len += 1;
        let Event { time, order, what } = event;
        let bucket = time >> self.width;
        // Only those that are less than a turn ahead of the current one lie on the ring.
        let ahead = bucket.wrapping_sub(self.current).wrapping_sub(1);
        if ahead < self.mask {
            self.put(bucket, event);
        } else {
            self.push_elsewhere(time, order, what);
        }
    }

    /// Adds an event that mostly comes after those that were pushed into its line before.
    #[inline]
    pub fn line_up(&mut self, line: Line, event: Event) {
        if self.side.line_up(line, event) {
            self.len += 1;
        } else {
            self.push(event);
        }
    }

    /// Puts an event into a bucket of the ring.
    #[inline(always)]
    fn put(&mut self, bucket: u64, event: Event) {
        let bucket = &mut self.ring[(bucket & self.mask) as usize];
        if bucket.capacity() == 0 {
            *bucket = self.spare.pop().unwrap_or_default();
        }
        bucket.push(event);
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, time: u64, order: u64, what: u64) {
        let event = Event { time, order, what };
        let bucket = time >> self.width;
        if self.current != u64::MAX && bucket <= self.current {
            self.side_pushes += 1;
            self.side.push(event);
        } else {
            self.over.push(Reverse(event));
        }
    }

    /// Takes the first event.
    pub fn pop(&mut self) -> Option<Event> {
        self.pop_before(u64::MAX)
    }

    /// Takes the first event, if it comes before `until`.
    #[inline(always)]
    pub fn pop_before(&mut self, until: u64) -> Option<Event> {
        let (at, beside) = (self.next, self.side.first);
        let due = self.due.get(at).map_or(u64::MAX, |event| event.time);
        let event = if due < beside && due < until {
            (self.next, self.len) = (at + 1, self.len - 1);
            &self.due[at]
        } else if beside < due && beside < until && beside < self.end && self.side.place < LINES - 1
        {
            self.len -= 1;
            self.side.remove(self.side.place);
            &self.side.taken
        } else if self.pop_elsewhere(until) {
            &self.found
        } else {
            return None;
        };
        Some(*event)
    }

    /// … where it may stand beside the bucket being drained, or beyond: it is then `found`.
    #[inline(never)]
    fn pop_elsewhere(&mut self, until: u64) -> bool {
        loop {
            let due = self.due.get(self.next).copied();
            // What stands beside the buckets may come later than the next of them.
            let near = self.side.first < self.end;
            let side = if near { self.side.peek() } else { None };
            let event = match (due, side) {
                (Some(due), Some((side, line))) if later(&due, side) => (*side, Some(line)),
                (Some(due), _) => (due, None),
                (None, Some((side, line))) => (*side, Some(line)),
                (None, None) => {
                    if !self.advance() {
                        return false;
                    }
                    continue;
                }
            };
            if event.0.time >= until && until < u64::MAX {
                return false;
            }
            match event.1 {
                Some(line) => self.side.remove(line),
                None => self.next += 1,
            }
            self.len -= 1;
            self.found = event.0;
            return true;
        }
    }

    /// The event `n` places further on in the bucket being drained: what is likely to come.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<&Event> {
        self.due.get(self.next + n)
    }

    /// … in a line.
    #[inline]
    pub fn ahead_in(&self, line: Line, n: usize) -> Option<&Event> {
        self.side.lines[line as usize].get(n)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Goes to the next bucket that holds an event, or to the one of the first event beside them.
    #[inline(never)]
    fn advance(&mut self) -> bool {
        self.due.clear();
        self.next = 0;
        if self.len == 0 {
            return false;
        }
        self.adapt();
        let beside = self.side.first >> self.width;
        if self.len == self.over.len() + self.side.len {
            // Nothing on the ring: jump.
            let over = self.over.peek().map_or(u64::MAX, |Reverse(e)| e.time);
            self.current = (over >> self.width).min(beside).wrapping_sub(1);
        }
        loop {
            self.current = self.current.wrapping_add(1);
            while let Some(Reverse(event)) = self.over.peek()
                && event.time >> self.width <= self.current
            {
                let event = *event;
                self.put(self.current, event);
                self.over.pop();
            }
            let slot = (self.current & self.mask) as usize;
            if !self.ring[slot].is_empty() {
                let mut bucket = std::mem::take(&mut self.ring[slot]);
                sort(&bucket, &mut self.due, &mut self.counts, self.width);
                bucket.clear();
                self.spare.push(bucket);
                self.drained += self.due.len();
                self.buckets += 1;
                break;
            }
            if beside <= self.current {
                break;
            }
        }
        let next = self.current.saturating_add(1);
        self.end = next.saturating_mul(1 << self.width);
        true
    }

    /// Makes the buckets wider or narrower where they have been too sparse or too crowded.
    fn adapt(&mut self) {
        let seen = self.drained + self.side_pushes;
        // Rebuilding costs about one pass over what waits; it must have been earned.
        if seen < 4096.max(self.len) || self.buckets == 0 {
            return;
        }
        let mean = self.drained / self.buckets;
        let crowded = mean > CROWDED
            || (self.side_pushes > 4 * self.drained && self.side_pushes > 64 * self.buckets);
        let bucketed = self.len - self.side.len;
        let beyond = self.over.len() > bucketed / 2;
        let sparse = bucketed > 4 * SPARSE && (mean < SPARSE || beyond);
        (self.drained, self.buckets, self.side_pushes) = (0, 0, 0);
        if crowded && self.width > 4 {
            self.rebuild(self.width - 1);
        } else if sparse && !crowded && self.width < 48 {
            self.rebuild(self.width + 1);
        }
    }

    /// Sorts everything that waits into buckets of another width. The bucket being drained must be empty.
    #[inline(never)]
    fn rebuild(&mut self, width: u32) {
        let end = self.current.wrapping_add(1) << self.width;
        let mut all: Vec<Event> = Vec::with_capacity(self.len);
        for bucket in self.ring.iter_mut().map(std::mem::take) {
            all.extend_from_slice(&bucket);
        }
        // Buckets of another width are of another size, and of another number.
        self.spare.clear();
        all.extend(self.over.drain().map(|Reverse(e)| e));
        self.width = width;
        self.current = (end >> width).wrapping_sub(1);
        self.len = self.side.len;
        for event in all {
            self.push(event);
        }
    }
}

/// Sorts `from` into `into`: a counting pass by the bits of the time just below the width, then insertion.
fn sort(from: &[Event], into: &mut Vec<Event>, counts: &mut Vec<u32>, width: u32) {
    into.clear();
    into.extend_from_slice(from);
    if from.len() >= 24 {
        // About as many cells as events.
        let bits = (usize::BITS - from.len().leading_zeros())
            .min(width)
            .min(12);
        let (shift, mask) = (width - bits, (1u64 << bits) - 1);
        let cell = |event: &Event| ((event.time >> shift) & mask) as usize;
        counts.clear();
        counts.resize((1 << bits) + 1, 0);
        for event in from {
            counts[cell(event) + 1] += 1;
        }
        let mut below = 0;
        for count in counts.iter_mut() {
            below += *count;
            *count = below;
        }
        for event in from {
            let at = &mut counts[cell(event)];
            into[*at as usize] = *event;
            *at += 1;
        }
    }
    insertion(into);
}

/// Does `a` come after `b`?
#[inline(always)]
fn later(a: &Event, b: &Event) -> bool {
    a.time > b.time || a.time == b.time && a > b
}

/// Insertion sort: cheap on what is nearly sorted; handed to a general sort where it is not.
fn insertion(events: &mut [Event]) {
    let mut moves = 0usize;
    for i in 1..events.len() {
        if !later(&events[i - 1], &events[i]) {
            continue;
        }
        let event = events[i];
        let mut j = i;
        while j > 0 && later(&events[j - 1], &event) {
            events[j] = events[j - 1];
            j -= 1;
        }
        events[j] = event;
        moves += i - j;
        if moves > 16 * events.len() {
            // Many events of one instant, pushed out of order.
            events.sort_unstable();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    fn event(time: u64, ordinal: u32) -> Event {
        Event::new(
            time,
            order(Step::Arrives, 0, ordinal),
            Kind::Poll,
            0,
            ordinal,
        )
    }

    /// The queue against a plain heap, under holds of very different lengths.
    #[test]
    fn the_order_is_that_of_a_heap() {
        let spreads: [u64; 6] = [
            1,
            1_000,
            50_000_000,
            2_000_000_000,
            3_600_000_000_000,
            40_000_000_000_000_000,
        ];
        for spread in spreads {
            let (mut queue, mut heap) = (Queue::default(), BinaryHeap::new());
            for i in 0..6000u32 {
                let e = event(mix(u64::from(i)) % (spread * 2), i);
                queue.push(e);
                heap.push(Reverse(e));
            }
            for i in 6000..60_000u32 {
                let (a, b) = (queue.pop(), heap.pop().map(|Reverse(e)| e));
                assert_eq!(a, b, "spread {spread}, event {i}");
                let now = a.map_or(0, |e| e.time);
                // Short holds, long ones, and now and then one at the same instant.
                let hold = if i % 7 == 0 {
                    0
                } else {
                    mix(u64::from(i)) % (if i % 3 == 0 { spread } else { 1 + spread / 50 })
                };
                let e = event(now + hold, i);
                queue.push(e);
                heap.push(Reverse(e));
            }
            while let Some(Reverse(e)) = heap.pop() {
                assert_eq!(queue.pop(), Some(e));
            }
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn events_of_one_instant_come_by_step_then_member_then_task() {
        let mut queue = Queue::default();
        let key = |step, member, ordinal| Event {
            order: order(step, member, ordinal),
            ..event(5, 0)
        };
        let sorted = [
            key(Step::Ends, 9, 9),
            key(Step::Arrives, 0, 1),
            key(Step::Arrives, 0, 2),
            key(Step::Arrives, 1, 0),
            key(Step::Sends, 0, 0),
        ];
        for e in sorted.iter().rev() {
            queue.push(*e);
        }
        for e in sorted {
            assert_eq!(queue.pop(), Some(e));
        }
    }
}
