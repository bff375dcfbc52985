//! Decisions of an envelope, case by case.

use super::*;

const MS: u64 = 1_000_000;

fn envelope() -> Policy {
    Policy {
        name: "envelope".into(),
        role: Role::Value,
        read: ReadAt::EveryAnswer,
        absent: WhenAbsent::Default,
        rules: Rules::new(&[]),
        default: 1000 * MS,
        floor: 500 * MS,
        ceiling: 5000 * MS,
        ceiling_cuts_hints: true,
        bounds: BoundsAt::Final,
        backoff: Backoff::None,
        hints_stop_backoff: false,
        reset: Reset::OnChange,
        errors: OnError::Retry,
        timeouts_are_errors: true,
        jitter: Jitter::None,
        jitter_step: 0,
        first_poll: FirstPoll::AfterWait,
        fixed_delay: true,
        timer: Timer::PERFECT,
        manner: WaitManner::Interruptible,
        give_up_after: FOREVER,
        last_wait: LastWait::Slept,
        ends_at_ttl: false,
        max_polls: u32::MAX,
        fetches_result: false,
        slow_down: 5000 * MS,
        max_errors: u32::MAX,
        retry_after: OnRetryAfter::Ignored,
        on_question: OnQuestion::PollsOn,
        max_questions: u8::MAX,
        stuck_after: u8::MAX,
        cancels: Cancels::default(),
    }
}

fn wait(policy: &Policy, state: &mut State, hint: RawHint) -> (u64, Stage) {
    match policy.decide(state, Saw::Unchanged(hint), 0) {
        Decision::Wait(w) => (w.wait / MS, w.cause),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_envelope_uses_valid_hints_only() {
    let (policy, state) = (envelope(), &mut State::default());
    let cases = [
        (RawHint::Absent, 1000, Stage::Default),
        (RawHint::Number(2000.0), 2000, Stage::Hint),
        (RawHint::Number(100.0), 500, Stage::Floor),
        (RawHint::Number(1e15), 5000, Stage::Ceiling),
        (RawHint::Number(0.0), 500, Stage::BadHint),
        (RawHint::Number(-5.0), 1000, Stage::BadHint),
        (RawHint::Number(f64::NAN), 1000, Stage::BadHint),
        (RawHint::Text(f64::NAN), 1000, Stage::BadHint),
    ];
    for (hint, ms, cause) in cases {
        assert_eq!(wait(&policy, state, hint), (ms, cause), "{hint:?}");
    }
}

#[test]
fn a_kept_hint_outlives_answers_without_one() {
    let policy = Policy {
        absent: WhenAbsent::KeepLast,
        ..envelope()
    };
    let state = &mut State::default();
    assert_eq!(wait(&policy, state, RawHint::Number(3000.0)).0, 3000);
    assert_eq!(wait(&policy, state, RawHint::Absent), (3000, Stage::Hint));
}

#[test]
fn the_first_answer_can_fix_the_interval_for_ever() {
    let policy = Policy {
        read: ReadAt::FirstAnswer,
        ..envelope()
    };
    let state = &mut State::default();
    policy.decide(state, Saw::Created(RawHint::Number(4000.0)), 0);
    assert_eq!(wait(&policy, state, RawHint::Absent).0, 1000);
    assert_eq!(wait(&policy, state, RawHint::Number(3000.0)).0, 1000);
}

#[test]
fn errors_back_off_on_their_own_and_start_again() {
    let waits = Backoff::geometric(Some(1000 * MS), 2.0, Some(4000 * MS));
    let policy = Policy {
        errors: OnError::BackOff {
            waits,
            reset_on_success: true,
            sticks: false,
        },
        ..envelope()
    };
    let state = &mut State::default();
    let mut error = || match policy.decide(state, Saw::Error, 0) {
        Decision::Wait(w) => w.wait / MS,
        _ => 0,
    };
    assert_eq!(
        [error(), error(), error(), error()],
        [1000, 2000, 4000, 4000]
    );
    wait(&policy, state, RawHint::Absent);
    assert_eq!(
        policy.decide(state, Saw::Error, 0),
        policy.decide(&mut State::default(), Saw::Error, 0)
    );
}

#[test]
fn bounds_hold_after_the_stage_that_is_named() {
    let waits = |bounds, u| {
        let backoff = Backoff::geometric(None, 10.0, None);
        let policy = Policy {
            bounds,
            backoff,
            jitter: Jitter::Additive(1000 * MS),
            ..envelope()
        };
        let state = &mut State::default();
        let mut wait = || match policy.decide(state, Saw::Unchanged(RawHint::Absent), u) {
            Decision::Wait(w) => w.wait / MS,
            _ => 0,
        };
        [wait(), wait()]
    };
    let half = 1 << 63;
    assert_eq!(waits(BoundsAt::Final, half), [1500, 5000]);
    assert_eq!(waits(BoundsAt::BeforeJitter, half), [1500, 5500]);
    assert_eq!(waits(BoundsAt::BeforeBackoff, half), [1500, 10_500]);
}

/// Waits in ms after the creation's hint and then each of `hints`.
fn waits(policy: &Policy, creation: RawHint, hints: &[RawHint]) -> Vec<u64> {
    let state = &mut State::default();
    policy.decide(state, Saw::Created(creation), 0);
    hints
        .iter()
        .map(|hint| wait(policy, state, *hint).0)
        .collect()
}

#[test]
fn a_default_that_is_kept_is_no_hint() {
    let policy = Policy {
        read: ReadAt::FirstAnswer,
        default: 5000 * MS,
        ceiling: 1000 * MS,
        ceiling_cuts_hints: false,
        ..envelope()
    };
    assert_eq!(
        waits(&policy, RawHint::Absent, &[RawHint::Absent; 3]),
        [1000, 1000, 1000]
    );
}

#[test]
fn a_host_that_reads_answers_does_not_end_on_the_creation() {
    let error = Rule {
        class: Some(HintClass::Negative),
        json: None,
        min_ms: None,
        max_ms: None,
        outcome: Outcome::Error,
    };
    let policy = Policy {
        read: ReadAt::FirstAnswer,
        rules: Rules::new(&[error]),
        ..envelope()
    };
    let decision = policy.decide(
        &mut State::default(),
        Saw::Created(RawHint::Number(-1.0)),
        0,
    );
    assert!(matches!(decision, Decision::Wait(_)));
}

#[test]
fn an_error_answer_is_one_without_a_hint() {
    let after_error = |absent| {
        let policy = Policy {
            absent,
            ceiling: 10_000 * MS,
            ..envelope()
        };
        let state = &mut State::default();
        policy.decide(state, Saw::Created(RawHint::Number(8000.0)), 0);
        match policy.decide(state, Saw::Error, 0) {
            Decision::Wait(w) => (w.wait / MS, w.cause),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(after_error(WhenAbsent::Default), (1000, Stage::Default));
    assert_eq!(after_error(WhenAbsent::KeepLast), (8000, Stage::Hint));
}

#[test]
fn a_hint_as_a_floor_stands_under_the_hosts_own_terms() {
    let own = |backoff| Policy {
        role: Role::Floor,
        backoff,
        default: 1000 * MS,
        ceiling: 60_000 * MS,
        ..envelope()
    };
    let geometric = own(Backoff::geometric(None, 2.0, None));
    assert_eq!(
        waits(&geometric, RawHint::Absent, &[RawHint::Number(3000.0); 4]),
        [3000, 4000, 8000, 16_000]
    );
    let ramp = own(Backoff::geometric(Some(500 * MS), 2.0, Some(2000 * MS)));
    assert_eq!(
        waits(&ramp, RawHint::Absent, &[RawHint::Number(5000.0); 2]),
        [5000, 5000]
    );
    let retry = OnError::BackOff {
        waits: Backoff::geometric(Some(1000 * MS), 2.0, None),
        reset_on_success: true,
        sticks: false,
    };
    let errors = Policy {
        absent: WhenAbsent::KeepLast,
        errors: retry,
        ..own(Backoff::None)
    };
    let state = &mut State::default();
    wait(&errors, state, RawHint::Number(5000.0));
    let Decision::Wait(after) = errors.decide(state, Saw::Error, 0) else {
        panic!("it retries")
    };
    assert_eq!(after.wait / MS, 5000);
}

#[test]
fn each_slow_down_makes_every_later_wait_longer() {
    let (mut policy, state) = (envelope(), &mut State::default());
    policy.ceiling = FOREVER;
    let mut decide = |saw| match policy.decide(state, saw, 0) {
        Decision::Wait(w) => (w.wait / MS, w.cause),
        other => panic!("{other:?}"),
    };
    let hint = Saw::Unchanged(RawHint::Number(2000.0));
    assert_eq!(decide(hint), (2000, Stage::Hint));
    assert_eq!(decide(Saw::SlowDown), (6000, Stage::SlowDown));
    assert_eq!(decide(hint), (7000, Stage::SlowDown));
    decide(Saw::SlowDown);
    assert_eq!(decide(hint), (12_000, Stage::SlowDown));
}

#[test]
fn errors_in_a_row_end_the_loop() {
    let (mut policy, state) = (envelope(), &mut State::default());
    policy.max_errors = 3;
    let mut ends = |saw| policy.decide(state, saw, 0) == Decision::End(LoopEnd::Error);
    let good = Saw::Unchanged(RawHint::Absent);
    let ended: Vec<bool> = [
        Saw::Error,
        Saw::Error,
        good,
        Saw::Error,
        Saw::Error,
        Saw::Error,
    ]
    .into_iter()
    .map(&mut ends)
    .collect();
    assert_eq!(ended, [false, false, false, false, false, true]);
}

#[test]
fn retry_after_is_obeyed_as_the_policy_says() {
    let obeyed = |is_wait, ceiling, limit, beyond| OnRetryAfter::Obeyed {
        is_wait,
        ceiling,
        limit,
        beyond,
        on_success: false,
    };
    let s = 1000 * MS;
    let after = |rule, retry_after, good| {
        let (mut policy, state) = (envelope(), &mut State::default());
        policy.retry_after = rule;
        let decision = policy.decide(state, Saw::Error, 0);
        match policy.obey(state, decision, retry_after, good) {
            Decision::Wait(w) => Some((w.wait / MS, w.cause)),
            _ => None,
        }
    };
    let floor = obeyed(false, FOREVER, FOREVER, BeyondLimit::Cut);
    assert_eq!(
        after(floor, 60 * s, false),
        Some((60_000, Stage::RetryAfter))
    );
    assert_eq!(
        after(floor, 0, false),
        Some((1000, Stage::Default)),
        "the own wait is longer"
    );
    assert_eq!(
        after(floor, 60 * s, true),
        Some((1000, Stage::Default)),
        "not on success"
    );
    let wait = obeyed(true, 5 * s, FOREVER, BeyondLimit::Cut);
    assert_eq!(after(wait, 0, false), Some((0, Stage::RetryAfter)));
    assert_eq!(
        after(wait, 60 * s, false),
        Some((5000, Stage::RetryAfter)),
        "cut by the ceiling"
    );
    let limited = |beyond| obeyed(false, FOREVER, 10 * s, beyond);
    assert_eq!(
        after(limited(BeyondLimit::Cut), 60 * s, false),
        Some((10_000, Stage::RetryAfter))
    );
    assert_eq!(
        after(limited(BeyondLimit::Ignore), 60 * s, false),
        Some((1000, Stage::Default))
    );
    assert_eq!(after(limited(BeyondLimit::End), 60 * s, false), None);
    assert_eq!(
        after(OnRetryAfter::Ignored, 60 * s, false),
        Some((1000, Stage::Default))
    );
}

/// What the loop does: the wait in ms, or why it has none.
fn next(policy: &Policy, state: &mut State, saw: Saw) -> Result<u64, Decision> {
    match policy.decide(state, saw, 0) {
        Decision::Wait(w) => Ok(w.wait / MS),
        other => Err(other),
    }
}

const END: Result<u64, Decision> = Err(Decision::End(LoopEnd::Question));

fn asks(new: bool) -> Saw {
    Saw::Asks {
        hint: RawHint::Number(2000.0),
        new,
    }
}

#[test]
fn a_question_need_not_wait() {
    let answers = |on_question| {
        let policy = Policy {
            on_question,
            ..envelope()
        };
        let state = &mut State::default();
        [true, false, false].map(|new| next(&policy, state, asks(new)))
    };
    assert_eq!(answers(OnQuestion::PollsOn), [Ok(2000), Ok(2000), Ok(2000)]);
    assert_eq!(answers(OnQuestion::PollsAtOnce), [Ok(0), Ok(0), Ok(0)]);
    assert_eq!(
        answers(OnQuestion::PollsOnceMore),
        [Ok(0), Ok(2000), Ok(2000)]
    );
    let result = Err(Decision::AwaitResult);
    assert_eq!(answers(OnQuestion::AwaitsResult), [result; 3]);
    assert_eq!(answers(OnQuestion::Ends), [END, END, END]);
}

#[test]
fn questions_end_a_loop_that_is_stuck_or_has_answered_enough() {
    let stuck = Policy {
        stuck_after: 2,
        ..envelope()
    };
    let state = &mut State::default();
    let seen = [asks(true), asks(false), asks(false)].map(|saw| next(&stuck, state, saw));
    assert_eq!(seen, [Ok(2000), Ok(2000), END]);
    // Another question, or work, begins the count anew.
    let state = &mut State::default();
    let work = Saw::Unchanged(RawHint::Absent);
    for saw in [
        asks(true),
        asks(false),
        asks(true),
        asks(false),
        work,
        asks(false),
    ] {
        assert!(next(&stuck, state, saw).is_ok(), "{saw:?}");
    }
    let two = Policy {
        max_questions: 2,
        ..envelope()
    };
    let state = &mut State::default();
    let seen = [asks(true), asks(false), asks(true), asks(true)];
    let seen = seen.map(|saw| next(&two, state, saw));
    assert_eq!(seen, [Ok(2000), Ok(2000), Ok(2000), END]);
}

#[test]
fn a_round_of_questions_starts_the_ramp_anew() {
    let ramp = Policy {
        role: Role::RampCeiling,
        floor: 0,
        backoff: Backoff::geometric(Some(20 * MS), 2.0, None),
        on_question: OnQuestion::PollsAtOnce,
        ..envelope()
    };
    let state = &mut State::default();
    let works = Saw::Unchanged(RawHint::Absent);
    let seen = [works, works, asks(true), asks(false), works, works];
    let waits = seen.map(|saw| next(&ramp, state, saw).unwrap());
    assert_eq!(waits, [20, 40, 0, 0, 20, 40]);
}

#[test]
fn the_last_wait_is_slept_refused_or_cut() {
    let at = |last_wait, from, next| {
        let policy = Policy {
            last_wait,
            ..envelope()
        };
        policy.next_poll(from, next, 100)
    };
    for last in [LastWait::Slept, LastWait::Refused, LastWait::Trimmed] {
        assert_eq!(at(last, 10, 60), Some(60), "{last:?}");
        assert_eq!(at(last, 10, 100), Some(100), "{last:?}");
    }
    assert_eq!(
        at(LastWait::Slept, 90, 140),
        Some(140),
        "which is beyond it"
    );
    assert_eq!(at(LastWait::Refused, 90, 140), None);
    assert_eq!(at(LastWait::Trimmed, 90, 140), Some(100));
    assert_eq!(
        at(LastWait::Trimmed, 100, 150),
        None,
        "that poll was the last"
    );
    let less = LastWait::TrimmedLess(15);
    assert_eq!(at(less, 10, 60), Some(60));
    assert_eq!(at(less, 10, 85), Some(85));
    assert_eq!(at(less, 70, 86), Some(85), "15 are left");
    assert_eq!(at(less, 84, 100), Some(85));
    assert_eq!(at(less, 85, 100), None, "no wait would be left");
    assert_eq!(at(less, 86, 101), None, "less than 15 are left");
}

#[test]
fn hints_can_be_taken_as_none_or_make_the_host_forget() {
    let rule = |class, outcome| Rule {
        class: Some(class),
        json: None,
        min_ms: None,
        max_ms: None,
        outcome,
    };
    let policy = Policy {
        absent: WhenAbsent::KeepLast,
        rules: Rules::new(&[
            rule(HintClass::Zero, Outcome::Absent),
            rule(HintClass::Negative, Outcome::Forget),
        ]),
        ..envelope()
    };
    let state = &mut State::default();
    let hints = [3000.0, 0.0, -1.0, 0.0].map(RawHint::Number);
    let waits = hints.map(|hint| wait(&policy, state, hint).0);
    assert_eq!(waits, [3000, 3000, 1000, 1000]);
}

#[test]
fn an_error_raised_by_a_wait_needs_the_wait() {
    let error = Rule {
        class: Some(HintClass::Negative),
        json: None,
        min_ms: None,
        max_ms: None,
        outcome: Outcome::Error,
    };
    let created = Saw::Created(RawHint::Number(-5.0));
    let first = |first_poll| {
        let policy = Policy {
            rules: Rules::new(&[error]),
            first_poll,
            ..envelope()
        };
        next(&policy, &mut State::default(), created)
    };
    assert_eq!(first(FirstPoll::AtOnce), Ok(0));
    let ended = Err(Decision::End(LoopEnd::Error));
    assert_eq!(first(FirstPoll::AfterWait), ended);
}

#[test]
fn a_backoff_can_leave_hints_alone() {
    let policy = Policy {
        floor: 0,
        backoff: Backoff::geometric(Some(40 * MS), 2.0, Some(500 * MS)),
        hints_stop_backoff: true,
        ..envelope()
    };
    let state = &mut State::default();
    let hints = [RawHint::Absent, RawHint::Absent, RawHint::Number(250.0)];
    let waits = hints.map(|hint| wait(&policy, state, hint).0);
    assert_eq!(waits, [40, 80, 250]);
}

#[test]
fn an_error_can_lower_an_interval_for_good() {
    // The crate oauth2: 5 s, two slow_downs, then an error of the transport: min(2 × 15 s, 10 s).
    let policy = Policy {
        read: ReadAt::Creation,
        default: 5000 * MS,
        floor: 0,
        ceiling: FOREVER,
        errors: OnError::BackOff {
            waits: Backoff::geometric(None, 2.0, Some(10_000 * MS)),
            reset_on_success: true,
            sticks: true,
        },
        ..envelope()
    };
    let state = &mut State::default();
    let works = Saw::Unchanged(RawHint::Absent);
    let seen = [
        works,
        Saw::SlowDown,
        Saw::SlowDown,
        Saw::Error,
        works,
        Saw::SlowDown,
    ];
    let waits = seen.map(|saw| next(&policy, state, saw).unwrap());
    assert_eq!(waits, [5000, 10_000, 15_000, 10_000, 10_000, 15_000]);
}
