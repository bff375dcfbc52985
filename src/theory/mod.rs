//! Closed forms for polling load, detection delay and queue wait.
//!
//! **What it is for.** Each function answers, without simulating, a question the simulator also
//! answers: how many polls does a task cost, how late is its end seen, what does a server get to
//! bear. The tests of the simulator hold its figures against these, and a reader can use them for
//! a first estimate on paper.
//!
//! **What always holds.**
//!
//! * Every function is pure: the same arguments give the same bits on every platform, because
//!   logarithms, exponentials and the error function come from `libm`, not from the system.
//! * Times are in seconds and rates per second unless the name says otherwise. Functions that
//!   count (polls, requests) return whole numbers in an `f64`; those that average do not.
//! * An argument outside its stated range gives NaN, and so does NaN or an infinite argument where
//!   infinity is not stated to be allowed. Nothing panics, except [`backoff_send_times`], which
//!   returns a list and so has no NaN to return.
//! * A poll sent at exactly the end of a task sees the end. A duration within one part in 10¹² of
//!   a poll time counts as that poll time, so a task of 1.1 s at 0.1 s takes eleven polls and not twelve.
//!
//! **What it does not do.** It does not draw random numbers, does not know about policies,
//! scenarios or traces, and does not check that the conditions of a formula are met: each is stated
//! with its function and is the caller's to keep. A second moment is not checked against its mean.
//! The one exception is [`fleet`], which reads the conditions off a scenario.
//!
//! | oracle | quantity | functions |
//! | --- | --- | --- |
//! | O1 | polls per task, fixed interval | [`polls_fixed_interval`], [`polls_mean_fixed_interval`] |
//! | O2 | detection delay, fixed interval | [`completion_delay_fixed_interval`], [`completion_delay_mean_fixed_interval`], [`completion_delay_quantile_fixed_interval`] |
//! | O3 | exponential durations | [`polls_mean_exponential`], [`completion_delay_mean_exponential`] |
//! | O4 | aggregate poll rate | [`aggregate_rate_open`], [`aggregate_rate_open_correlated`], [`aggregate_rate_closed`] |
//! | O5 | serial loop, sleep after the answer | [`serial_loop_rate_per_s`], [`completion_delay_mean_serial_loop`] |
//! | O6 | delay with random intervals | [`uniform_moments`], [`residual_mean`], [`residual_mean_uniform`], [`residual_cdf_uniform`], [`residual_quantile_uniform`] |
//! | O6b | abort latency and leaked polls | [`abort_latency_mean_interruptible`], [`abort_latency_mean_after_sleep`], [`abort_latency_mean_sliced`], [`abort_latency_quantile_sliced`], [`abort_latency_mean_watched`], [`abort_latency_quantile_watched`], [`abort_latency_ignored`], [`leaked_polls_fixed_interval`], [`leaked_loops_mean`] |
//! | O7 | polls with random intervals | [`polls_mean_renewal`] |
//! | O8 | clamped interval hints | [`mean_inverse_clamped_lognormal`], [`mean_clamped_lognormal`], [`mean_inverse_clamped_uniform`], [`mean_clamped_uniform`] |
//! | O9 | bursts, spreading, random phases | [`burst_wait_mean`], [`burst_wait_max`], [`burst_drain`], [`spread_peak_rate_per_s`], [`spread_delay_mean`], [`spread_needed`], [`bucket_mean_random_phases`], [`bucket_quantile_random_phases`] |
//! | O10 | does jitter undo synchrony | [`phase_coherence_uniform`], [`cycles_to_coherence_uniform`] |
//! | O11 | token buckets | [`token_bucket_first_refusal`], [`token_bucket_requests_before_refusal`], [`token_bucket_granted`] |
//! | O11 | quotas per window | [`quota_spent_after`], [`quota_dark_share`], [`pollers_within_quota`], [`pollers_within_quota_in_step`], [`shortest_interval_within_quota`], [`shortest_interval_within_quota_in_step`] |
//! | O12 | wait behind Poisson polls | [`wait_mean_mg1`], [`wait_mean_md1`] |
//! | O13 | wait behind periodic polls | [`virtual_wait_tail_ndd1`], [`wait_tail_ndd1`], [`wait_mean_ndd1`], [`wait_quantile_ndd1`] |
//! | O14 | geometric backoff | [`polls_geometric_backoff`], [`completion_delay_geometric_backoff`], [`detection_bound_geometric_backoff`], [`detection_ratio_log_uniform`], [`backoff_send_times`] |
//! | O15 | requests in an outage | [`outage_requests_fixed_interval`], [`outage_requests_without_wait`], [`outage_requests_geometric_backoff`], [`outage_requests_breaker`] |
//! | O16 | budget of a fleet | [`interval_under_budget`], [`aggregate_rate_under_budget`], [`completion_delay_mean_under_budget`] |
//! | O17 | which interval | [`cost_mean_fixed_interval`], [`best_interval`], [`feasible_intervals`] |
//! | O18 | tasks met while they run | [`remaining_mean_running_task`], [`duration_mean_running_task`], [`constant_moments`], [`exponential_moments`], [`lognormal_moments`] |
//! | O19 | retries in layers | [`retry_amplification`] |

mod abort;
mod backoff;
mod binomial;
mod budget;
mod bursts;
mod coherence;
mod fixed_interval;
pub mod fleet;
mod hints;
mod inspection;
mod optimum;
mod outage;
mod queues;
mod quota;
mod range;
mod renewal;
mod rounding;
#[cfg(test)]
mod testing;

pub use abort::{
    abort_latency_ignored, abort_latency_mean_after_sleep, abort_latency_mean_interruptible,
    abort_latency_mean_sliced, abort_latency_mean_watched, abort_latency_quantile_sliced,
    abort_latency_quantile_watched, leaked_loops_mean, leaked_polls_fixed_interval,
};
pub use backoff::{
    backoff_send_times, completion_delay_geometric_backoff, detection_bound_geometric_backoff,
    detection_ratio_log_uniform, polls_geometric_backoff,
};
pub use budget::{
    aggregate_rate_under_budget, completion_delay_mean_under_budget, interval_under_budget,
};
pub use bursts::{
    bucket_mean_random_phases, bucket_quantile_random_phases, burst_drain, burst_wait_max,
    burst_wait_mean, spread_delay_mean, spread_needed, spread_peak_rate_per_s,
};
pub use coherence::{cycles_to_coherence_uniform, phase_coherence_uniform};
pub use fixed_interval::{
    FirstPoll, aggregate_rate_closed, aggregate_rate_open, aggregate_rate_open_correlated,
    completion_delay_fixed_interval, completion_delay_mean_exponential,
    completion_delay_mean_fixed_interval, completion_delay_mean_serial_loop,
    completion_delay_quantile_fixed_interval, polls_fixed_interval, polls_mean_exponential,
    polls_mean_fixed_interval, serial_loop_rate_per_s,
};
pub use hints::{
    mean_clamped_lognormal, mean_clamped_uniform, mean_inverse_clamped_lognormal,
    mean_inverse_clamped_uniform,
};
pub use inspection::{
    constant_moments, duration_mean_running_task, exponential_moments, lognormal_moments,
    remaining_mean_running_task,
};
pub use optimum::{best_interval, cost_mean_fixed_interval, feasible_intervals};
pub use outage::{
    outage_requests_breaker, outage_requests_fixed_interval, outage_requests_geometric_backoff,
    outage_requests_without_wait, retry_amplification,
};
pub use queues::{
    virtual_wait_tail_ndd1, wait_mean_md1, wait_mean_mg1, wait_mean_ndd1, wait_quantile_ndd1,
    wait_tail_ndd1,
};
pub use quota::{
    pollers_within_quota, pollers_within_quota_in_step, quota_dark_share, quota_spent_after,
    shortest_interval_within_quota, shortest_interval_within_quota_in_step,
    token_bucket_first_refusal, token_bucket_granted, token_bucket_requests_before_refusal,
};
pub use renewal::{
    polls_mean_renewal, residual_cdf_uniform, residual_mean, residual_mean_uniform,
    residual_quantile_uniform, uniform_moments,
};
