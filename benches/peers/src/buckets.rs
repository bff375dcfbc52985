//! Pending events in wide buckets, in the exact order of their `Ord`.
//!
//! A ring of append-only buckets, few enough that their tails stay in the cache. A bucket is sorted once, when it falls due. A side
//! heap takes what is pushed into the bucket being drained.

use std::cmp::Reverse;

use dary_heap::QuaternaryHeap;

/// What has a time; its `Ord` begins with that.
pub trait Timed: Copy + Ord {
    /// Simulated time, ns.
    fn time(&self) -> u64;
}

/// The ring spans 2^31 ns, which is more than the longest interval of W1 and its delays.
const LOG2_SPAN: u32 = 31;

/// The width of a bucket as log2 of ns, so that it holds about 500 events of W1. A tenth of the tasks are alive at once, and each polls once a second.
pub fn log2_width(tasks: u32) -> u32 {
    let polls_per_s = f64::from(tasks) / 10.0;
    let few = (8e9 / polls_per_s).log2().round().clamp(12.0, 27.0) as u32;
    (few + 6).min(26)
}

/// The buckets, their events unsorted.
pub struct Ring<T> {
    log2_width: u32,
    mask: u64,
    buckets: Vec<Vec<T>>,
    counts: Vec<u32>,
}

impl<T: Timed> Ring<T> {
    /// Empty buckets of 2^`log2_width` ns.
    pub fn new(log2_width: u32) -> Self {
        let buckets = 1 << (LOG2_SPAN - log2_width);
        Ring {
            log2_width,
            mask: buckets - 1,
            buckets: (0..buckets).map(|_| Vec::new()).collect(),
            counts: Vec::new(),
        }
    }

    /// The number of the bucket that holds this time.
    #[inline(always)]
    pub fn number(&self, time: u64) -> u64 {
        time >> self.log2_width
    }

    /// The first instant after this bucket, ns.
    pub fn end(&self, number: u64) -> u64 {
        (number + 1) << self.log2_width
    }

    /// Puts an event into its bucket, which is `now` or later.
    #[inline(always)]
    pub fn push(&mut self, event: T, now: u64) {
        let number = self.number(event.time());
        assert!(number.wrapping_sub(now) <= self.mask, "outside the ring");
        self.buckets[(number & self.mask) as usize].push(event);
    }

    /// Empties a bucket into `sorted`, in order.
    pub fn take(&mut self, number: u64, sorted: &mut Vec<T>) {
        let bucket = &mut self.buckets[(number & self.mask) as usize];
        spread(bucket, sorted, &mut self.counts, self.log2_width);
        insertion_sort(sorted);
        bucket.clear();
    }
}

/// A counting pass by the next bits of the time, into about four places an event: nearly sorted.
#[inline(always)]
fn spread<T: Timed>(events: &[T], sorted: &mut Vec<T>, counts: &mut Vec<u32>, log2_width: u32) {
    sorted.clear();
    sorted.extend_from_slice(events);
    if events.len() < 24 {
        return;
    }
    let half = usize::BITS - (events.len() / 2).leading_zeros();
    let bits = (half + 2).min(log2_width).min(12);
    let place = |e: &T| (e.time() >> (log2_width - bits)) as usize & ((1 << bits) - 1);
    counts.clear();
    counts.resize(1 << bits, 0);
    for event in events {
        counts[place(event)] += 1;
    }
    let mut before = 0;
    for count in counts.iter_mut() {
        before += std::mem::replace(count, before);
    }
    for event in events {
        let next = &mut counts[place(event)];
        sorted[*next as usize] = *event;
        *next += 1;
    }
}

#[inline(always)]
fn insertion_sort<T: Ord + Copy>(events: &mut [T]) {
    for i in 1..events.len() {
        let event = events[i];
        let mut j = i;
        while j > 0 && events[j - 1] > event {
            events[j] = events[j - 1];
            j -= 1;
        }
        events[j] = event;
    }
}

/// Push and pop, event by event.
pub struct Queue<T> {
    ring: Ring<T>,
    /// The bucket being drained, ascending, from `next` on.
    due: Vec<T>,
    next: usize,
    current: u64,
    side: QuaternaryHeap<Reverse<T>>,
    len: usize,
}

impl<T: Timed> Queue<T> {
    /// Empty, of buckets of 2^`log2_width` ns.
    pub fn new(log2_width: u32) -> Self {
        Queue {
            ring: Ring::new(log2_width),
            due: Vec::new(),
            next: 0,
            current: 0,
            side: QuaternaryHeap::new(),
            len: 0,
        }
    }

    /// Adds an event, not before the last one that was popped.
    #[inline(always)]
    pub fn push(&mut self, event: T) {
        self.len += 1;
        if self.ring.number(event.time()) == self.current {
            self.side.push(Reverse(event));
        } else {
            self.ring.push(event, self.current);
        }
    }

    /// The next event.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        while self.next == self.due.len() {
            if let Some(Reverse(event)) = self.side.pop() {
                return Some(event);
            }
            self.advance();
        }
        let event = self.due[self.next];
        if self.side.peek().is_some_and(|side| side.0 < event) {
            return self.side.pop().map(|side| side.0);
        }
        self.next += 1;
        Some(event)
    }

    #[inline(never)]
    fn advance(&mut self) {
        self.current += 1;
        self.ring.take(self.current, &mut self.due);
        self.next = 0;
    }
}
